import type { Job, JobState, RecheckFinished, TaskChanged, TaskState, TrialFinished } from "../api/types";
import { functionName } from "../format/function-name";
import { formatLatency, formatSpeedup } from "../format/units";
import type { JobEvent } from "./job-event";

const STATES: Record<JobState | TaskState, string> = {
  queued: "is queued",
  running: "is running",
  joined: "waits for the result of another job",
  succeeded: "has succeeded",
  partly: "has succeeded in part",
  failed: "has failed",
  cancelled: "was cancelled",
};

/** Describes an event in a line. */
export function eventInWords({ type, data }: JobEvent, job: Pick<Job, "tasks">): string {
  if (type === "job") return `The job ${STATES[data.state]}${data.error ? `: ${data.error}` : "."}`;
  if (type === "recheck") return recheckInWords(data);
  const task = job.tasks.find(({ workload_hash }) => workload_hash === data.workload_hash);
  const name = task ? functionName(task) : data.workload_hash.slice(0, 12);
  return type === "task" ? taskInWords(name, data) : trialInWords(name, data);
}

function recheckInWords({ name, result }: RecheckFinished): string {
  const now = result.best_us === null ? "" : `, ${formatLatency(result.best_us)} now`;
  return `The best of ${name} was raced again: ${result.verdict}${now}${result.message ? `; ${result.message}` : ""}.`;
}

function taskInWords(name: string, { state, best_us, speedup, interval, certified }: TaskChanged): string {
  const ratio = speedup === null ? "" : `, ${formatSpeedup(speedup, interval)}`;
  const best = best_us === null ? "" : `; best ${formatLatency(best_us)}${ratio}`;
  return `Task ${name} ${STATES[state]}${best}${certified ? ", certified" : ""}.`;
}

function trialInWords(name: string, trial: TrialFinished): string {
  const subject = `Trial #${trial.number} of ${name}`;
  return trial.median_us === null
    ? `${subject} failed: ${trial.failure_kind} at ${trial.failure_stage}.`
    : `${subject} took ${formatLatency(trial.median_us)}.`;
}
