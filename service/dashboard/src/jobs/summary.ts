import type { Job, Task, Trial } from "../api/types";
import { formatFailureKind } from "../format/failure";
import { functionName } from "../format/function-name";
import { formatElapsed } from "../format/time";
import { formatLatency, plural } from "../format/units";

/** The task that the model spends most time in before tuning: the one to show first. */
export function costliestTask(job: Job): Task | undefined {
  const cost = (task: Task) => task.weight * (task.baseline_us ?? 0);
  return [...job.tasks].sort((a, b) => cost(b) - cost(a))[0];
}

/** The task of this digest, or the one to show first if the job has no such task. */
export function chosenTask(job: Job, hash: string | null): Task | undefined {
  return job.tasks.find(({ workload_hash }) => workload_hash === hash) ?? costliestTask(job);
}

/** Describes the limits and goals of a budget; the search ends at the first that it reaches. */
export function budgetInWords(budget: Job["budget"]): string {
  const { max_seconds, max_device_seconds, target_latency_us, until } = budget;
  const limits = [plural(budget.max_trials, "trial")];
  if (max_seconds != null) limits.push(formatElapsed(max_seconds * 1_000));
  if (max_device_seconds != null) limits.push(`${formatElapsed(max_device_seconds * 1_000)} on devices`);
  if (target_latency_us != null) limits.push(`a model latency of ${formatLatency(target_latency_us)}`);
  if (until === "plateau") limits.push("a plateau");
  return limits.join(" or ");
}

/** Failures by kind, in words, the most frequent first: "2 did not compile, 1 timed out". */
export function failuresInWords(failures: Record<string, number>): string {
  return Object.entries(failures)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([kind, count]) => `${count} ${formatFailureKind(kind)}`)
    .join(", ");
}

/** A trial as people name it: `#3`, or `dense #3` where the job has several tasks, each with its own numbers. */
export function trialName({ tasks }: Pick<Job, "tasks">, { number, workload_hash }: Trial): string {
  if (tasks.length < 2) return `#${number}`;
  const task = tasks.find((each) => each.workload_hash === workload_hash);
  return `${task ? functionName(task, tasks) : workload_hash.slice(0, 12)} #${number}`;
}
