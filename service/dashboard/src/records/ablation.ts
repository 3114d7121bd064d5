import type { Ablation } from "../api/types";
import { type Ends, formatSpeedup, formatSpeedupInterval } from "../format/units";

type Neighbour = NonNullable<Ablation["result"]>["neighbours"][number];

/** A decision of a schedule beside what it was replaced by. */
export interface DecisionEffect {
  decision: string;
  own: string;
  other: string;
  us: number | null;
  /** The neighbour's time over the schedule's; null if the neighbour failed. */
  slowdown: (Ends & { value: number }) | null;
  message: string | null;
}

/** Neighbours as rows, those that are slowest against the schedule first, those that failed last. */
export function effectsOf(neighbours: readonly Neighbour[]): DecisionEffect[] {
  return neighbours
    .map(({ changes, us, slowdown, message }) => ({
      ...joined(changes),
      us,
      slowdown,
      message: message ?? null,
    }))
    .sort((a, b) => (b.slowdown?.value ?? 0) - (a.slowdown?.value ?? 0));
}

/** Levels of a tile, `block: tile i[0]` and so on, are one decision with several factors. */
function joined(changes: Neighbour["changes"]): Pick<DecisionEffect, "decision" | "own" | "other"> {
  const names = changes.map(({ name }) => name);
  const tile = /^(.*)\[\d+\]$/.exec(names[0] ?? "")?.[1];
  const sameTile = tile !== undefined && names.every((name) => name.startsWith(`${tile}[`));
  const levels = names.map((name) => /\[(\d+)\]$/.exec(name)?.[1]);
  return {
    decision: sameTile ? `${tile}[${levels.join(", ")}]` : names.join("; ") || "a choice without a name",
    own: changes.map(({ before }) => before || "none").join(", "),
    other: changes.map(({ after }) => after || "none").join(", "),
  };
}

/** What a decision brings in words, no surer than its interval. */
export function effectWords({ slowdown, message }: DecisionEffect): string {
  if (slowdown === null) return message ?? "the other program failed";
  const interval = `(${formatSpeedupInterval(slowdown)})`;
  if (slowdown.low > 1) return `${formatSpeedup(slowdown.value, slowdown)} ${interval}`;
  if (slowdown.high !== null && slowdown.high < 1) {
    return `nothing: the other is faster, ${formatSpeedup(slowdown.value, slowdown)} of the time ${interval}`;
  }
  return `no difference that the race shows ${interval}`;
}
