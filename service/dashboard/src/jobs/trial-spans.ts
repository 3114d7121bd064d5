import type { Job, Span, Trial } from "../api/types";
import { trialName } from "./summary";

export type Stage = Span["stage"];

export const STAGES: readonly Stage[] = ["propose", "build", "measure"];

/** Work on a trial: a slice of the timeline. Times in milliseconds since the job began. */
export interface Slice {
  stage: Stage;
  worker: string;
  start: number;
  end: number;
  /** Names of its trials, by `trialName`; a proposal is for many trials. */
  trials: string[];
}

/** A line of the timeline: slices of one stage by one worker that do not overlap. */
export interface Lane {
  label: string;
  stage: Stage;
  slices: Slice[];
}

type TimedJob = Pick<Job, "created_at" | "started_at" | "tasks">;

/** The job's work in lanes: first proposing, then building, then measuring. */
export function lanesOf(job: TimedJob, trials: readonly Trial[]): Lane[] {
  const began = Date.parse(job.started_at ?? job.created_at);
  const slices = new Map<string, Slice>();
  for (const trial of trials) {
    for (const { stage, worker, started_at, finished_at } of trial.spans) {
      const key = `${stage} ${worker} ${started_at} ${finished_at} ${stage === "propose" ? "" : trial.id}`;
      const known = slices.get(key);
      const name = trialName(job, trial);
      if (known) known.trials.push(name);
      else {
        const start = Date.parse(started_at) - began;
        slices.set(key, { stage, worker, start, end: Date.parse(finished_at) - began, trials: [name] });
      }
    }
  }
  const lanes: Lane[] = [];
  for (const stage of STAGES) {
    const ofStage = [...slices.values()].filter((slice) => slice.stage === stage);
    const workers = [...new Set(ofStage.map(({ worker }) => worker))].sort();
    for (const worker of workers) {
      const rows = withoutOverlap(ofStage.filter((slice) => slice.worker === worker));
      for (const [index, slices] of rows.entries()) {
        const which = rows.length > 1 ? ` ${index + 1}` : "";
        lanes.push({ label: `${stage} · ${worker}${which}`, stage, slices });
      }
    }
  }
  return lanes;
}

/** Distributes slices over as few rows as possible without overlap: a machine has several builders. */
function withoutOverlap(slices: Slice[]): Slice[][] {
  const rows: Slice[][] = [];
  for (const slice of slices.sort((a, b) => a.start - b.start)) {
    const free = rows.find((row) => (row.at(-1) as Slice).end <= slice.start);
    if (free) free.push(slice);
    else rows.push([slice]);
  }
  return rows;
}

/** How long each stage took in all, in milliseconds. */
export function timeByStage(lanes: readonly Lane[]): Record<Stage, number> {
  const total: Record<Stage, number> = { propose: 0, build: 0, measure: 0 };
  for (const { stage, slices } of lanes) for (const { start, end } of slices) total[stage] += end - start;
  return total;
}
