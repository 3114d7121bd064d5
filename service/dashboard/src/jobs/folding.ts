import type { Task } from "../api/types";

/** Share of a model's time: a task below it, before tuning and now, is folded. */
const TRIVIAL = 0.01;
/** Up to this number of tasks, all are shown. */
const FEW = 5;

interface Folded {
  shown: Task[];
  /** Tasks with a small share of the model's time. */
  folded: Task[];
}

/** Tasks by their share of the model's time, the largest first; those with a small share are separate. */
export function foldTasks(tasks: Task[]): Folded {
  const ordered = [...tasks].sort((a, b) => (b.model_share ?? 0) - (a.model_share ?? 0));
  const before = (task: Task) => task.weight * (task.baseline_us ?? 0);
  const whole = tasks.reduce((sum, task) => sum + before(task), 0);
  const known = tasks.every((task) => task.model_share !== null && task.baseline_us !== null);
  if (!known || whole === 0 || tasks.length <= FEW) return { shown: ordered, folded: [] };
  const counts = (task: Task) =>
    task.error !== null || Math.max(task.model_share ?? 0, before(task) / whole) >= TRIVIAL;
  return { shown: ordered.filter(counts), folded: ordered.filter((task) => !counts(task)) };
}

/** The share of the model's time that some tasks take together. */
export function shareOf(tasks: Task[]): number {
  return tasks.reduce((sum, task) => sum + (task.model_share ?? 0), 0);
}

/** The error that several tasks have and no other task has another of; null if there is none. It is said once. */
export function commonError(tasks: readonly Task[]): string | null {
  const errors = tasks.flatMap(({ error }) => (error === null ? [] : [error]));
  return errors.length > 1 && new Set(errors).size === 1 ? (errors[0] ?? null) : null;
}
