import type { Job, Task } from "../api/types";
import { functionName } from "../format/function-name";

/** A function of either job. */
export interface TaskPair {
  name: string;
  hash: string;
  left: Task | undefined;
  right: Task | undefined;
  /** How many times as fast the right one is; null unless both are known and can be compared. */
  ratio: number | null;
}

/** A fact of two jobs, as text. */
export interface JobFact {
  label: string;
  left: string;
  right: string;
}

/** Whether timings of the jobs can be compared. */
export function comparable(left: Job, right: Job): boolean {
  return left.device_class === right.device_class;
}

/** The functions of both jobs, those with the largest difference in the model's time first. */
export function jobDiff(left: Job, right: Job): TaskPair[] {
  const lefts = byHash(left);
  const rights = byHash(right);
  const alike = comparable(left, right);
  const pairs = [...new Set([...lefts.keys(), ...rights.keys()])].map((hash) => {
    const [one, other] = [lefts.get(hash), rights.get(hash)];
    const ratio = alike && one?.best_us && other?.best_us ? one.best_us / other.best_us : null;
    const name = one ? functionName(one, left.tasks) : functionName(other as Task, right.tasks);
    return { name, hash, left: one, right: other, ratio };
  });
  return pairs.sort((a, b) => difference(b) - difference(a));
}

/** Facts of two jobs, those that differ apart from the others. */
export function jobFacts(
  facts: Record<string, (job: Job) => string>,
  left: Job,
  right: Job,
): { different: JobFact[]; same: JobFact[] } {
  const rows = Object.entries(facts).map(([label, of]) => ({ label, left: of(left), right: of(right) }));
  return {
    different: rows.filter((row) => row.left !== row.right),
    same: rows.filter((row) => row.left === row.right),
  };
}

function byHash({ tasks }: Job): Map<string, Task> {
  return new Map(tasks.map((task) => [task.workload_hash, task]));
}

function difference({ left, right }: TaskPair): number {
  const weight = (left ?? right)?.weight ?? 1;
  return weight * Math.abs((left?.best_us ?? 0) - (right?.best_us ?? 0));
}
