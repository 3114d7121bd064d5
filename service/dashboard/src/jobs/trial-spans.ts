import type { Job, Span, Trial } from "../api/types";
import { functionName } from "../format/function-name";
import { trialName } from "./summary";

type Stage = Span["stage"];

export const STAGES: readonly Stage[] = ["propose", "build", "measure"];

/** What a lane of the timeline shows: the job's phases, a stage of its trials, or when its functions were certified. */
export type LaneKind = Stage | "phase" | "certificate";

/** A slice of the timeline. Times in milliseconds since the job was first claimed. */
export interface Slice {
  kind: LaneKind;
  /** The phase, or what was certified; empty for work on trials. */
  words: string;
  worker: string;
  start: number;
  end: number;
  /** Names of its trials, by `trialName`; a proposal is for many trials. */
  trials: string[];
}

/** A line of the timeline: slices that do not overlap; those of trials are of one stage by one worker. */
export interface Lane {
  label: string;
  kind: LaneKind;
  slices: Slice[];
}

type TimedJob = Pick<Job, "created_at" | "started_at" | "tasks" | "phases">;

/** The job's phases, its work on trials (first proposing, then building, then measuring), and its certificates. */
export function lanesOf(job: TimedJob, trials: readonly Trial[], now: number): Lane[] {
  const began = Date.parse(job.started_at ?? job.created_at);
  return [...phaseLane(job, began, now), ...trialLanes(job, began, trials), ...certificateLane(job, began)];
}

function phaseLane({ phases = [] }: TimedJob, began: number, now: number): Lane[] {
  const slices = phases.map(({ activity, started_at, finished_at }) => ({
    kind: "phase" as const,
    words: activity,
    worker: "",
    start: Date.parse(started_at) - began,
    end: (finished_at === null ? now : Date.parse(finished_at)) - began,
    trials: [],
  }));
  return slices.length === 0 ? [] : [{ label: "job", kind: "phase", slices }];
}

function certificateLane({ tasks }: TimedJob, began: number): Lane[] {
  const slices = tasks.flatMap((task) => {
    if (!task.certified || !task.finished_at || task.answered_from === "database") return [];
    const at = Date.parse(task.finished_at) - began;
    const words = functionName(task);
    return [{ kind: "certificate" as const, words, worker: "", start: at, end: at, trials: [] }];
  });
  return slices.length === 0 ? [] : [{ label: "certificates", kind: "certificate", slices }];
}

function trialLanes(job: TimedJob, began: number, trials: readonly Trial[]): Lane[] {
  const slices = new Map<string, Slice>();
  for (const trial of trials) {
    for (const { stage, worker, started_at, finished_at } of trial.spans) {
      const key = `${stage} ${worker} ${started_at} ${finished_at} ${stage === "propose" ? "" : trial.id}`;
      const known = slices.get(key);
      const name = trialName(job, trial);
      if (known) known.trials.push(name);
      else {
        const start = Date.parse(started_at) - began;
        const end = Date.parse(finished_at) - began;
        slices.set(key, { kind: stage, words: "", worker, start, end, trials: [name] });
      }
    }
  }
  const lanes: Lane[] = [];
  for (const stage of STAGES) {
    const ofStage = [...slices.values()].filter(({ kind }) => kind === stage);
    const workers = [...new Set(ofStage.map(({ worker }) => worker))].sort();
    for (const worker of workers) {
      const rows = withoutOverlap(ofStage.filter((slice) => slice.worker === worker));
      for (const [index, slices] of rows.entries()) {
        const which = rows.length > 1 ? ` ${index + 1}` : "";
        lanes.push({ label: `${stage} · ${worker}${which}`, kind: stage, slices });
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

/** How long each stage of the trials took in all, in milliseconds. */
export function timeByStage(lanes: readonly Lane[]): Record<Stage, number> {
  const total: Record<LaneKind, number> = { propose: 0, build: 0, measure: 0, phase: 0, certificate: 0 };
  for (const { kind, slices } of lanes) for (const { start, end } of slices) total[kind] += end - start;
  return total;
}
