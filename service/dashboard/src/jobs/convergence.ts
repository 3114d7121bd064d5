import type { Trial } from "../api/types";

/** A latency in microseconds, at a trial's number within its task. */
export type Point = [number: number, us: number];

export interface Convergence {
  measured: Point[];
  /** The fastest so far, at every trial that improved it and at the last trial of all. */
  best: Point[];
  /** Numbers of the failed trials. */
  failed: number[];
}

/** The convergence of one task's search. The baseline (trial 0) is where the search starts, not a dot. */
export function convergence(trials: readonly Trial[]): Convergence {
  const ordered = [...trials].sort((a, b) => a.number - b.number);
  const result: Convergence = { measured: [], best: [], failed: [] };
  let bestUs = Number.POSITIVE_INFINITY;
  let last = 0;
  for (const { number, state, median_us: us } of ordered) {
    if (state === "failed") {
      result.failed.push(number);
      last = number;
    } else if (us !== null) {
      if (number > 0) result.measured.push([number, us]);
      if (us < bestUs) {
        bestUs = us;
        result.best.push([number, us]);
      }
      last = number;
    }
  }
  if (result.best.length > 0 && result.best.at(-1)?.[0] !== last) result.best.push([last, bestUs]);
  return result;
}

const ORDER: Record<Trial["state"], number> = { proposed: 0, measured: 1, failed: 1 };

/** Listed trials brought up to date by streamed ones; a replayed event never sets a trial back. */
export function mergeTrials(listed: readonly Trial[], streamed: ReadonlyMap<string, Trial>): Trial[] {
  const merged = new Map(listed.map((trial) => [trial.id, trial]));
  for (const [id, trial] of streamed) {
    const known = merged.get(id);
    if (known === undefined || ORDER[trial.state] >= ORDER[known.state]) merged.set(id, trial);
  }
  return [...merged.values()];
}
