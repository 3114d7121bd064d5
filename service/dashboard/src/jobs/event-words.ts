import type { Job } from "../api/types";
import { formatLatency, formatSpeedup } from "../format/units";

/** One event of a job's stream. */
export interface JobEvent {
  id: string;
  type: string;
  data: Record<string, unknown>;
}

/** What happened, in a line. */
export function eventInWords({ type, data }: JobEvent, job: Pick<Job, "tasks">): string {
  const task = job.tasks.find(({ workload_hash }) => workload_hash === data.workload_hash);
  const name = task?.name ?? String(data.workload_hash ?? "").slice(0, 12);
  if (type === "job") return `The job is ${data.state}${data.error ? `: ${data.error}` : "."}`;
  if (type === "task") {
    const speedup = data.speedup == null ? "" : `, ${formatSpeedup(data.speedup as number)}`;
    const best = data.best_us == null ? "" : `; best ${formatLatency(data.best_us as number)}${speedup}`;
    return `Task ${name} is ${data.state}${best}${data.certified ? ", certified" : ""}.`;
  }
  const trial = `Trial #${data.number} of ${name}`;
  if (data.state === "measured") return `${trial} took ${formatLatency(data.median_us as number)}.`;
  if (data.state === "failed") return `${trial} failed: ${data.failure_kind} at ${data.failure_stage}.`;
  return `${trial} is ${data.state}.`;
}
