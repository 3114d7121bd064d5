import type { Job, Trial } from "../api/types";

/** A starting point that a rule of the space gives for a function, which ran. */
export interface Seed {
  /** Its place in the rules' order, from 1: the first is what they take for the fastest. */
  place: number;
  us: number;
}

/** How well the rules ordered their starting points, and how close the first came to the fastest trial. */
export interface FirstChoices {
  seeds: Seed[];
  /** Starting points that failed, which have places, too. */
  failed: number;
  /** Rank correlation of the order and of speed; null with fewer than three seeds, or if all are equally fast. */
  rank: number | null;
  /** Of all trials of the function in this job that are no baseline. */
  fastestUs: number;
}

/** The first choices of the rules for a task, in the order in which they were proposed; null if none ran. */
export function firstChoices(trials: readonly Trial[], hash: string): FirstChoices | null {
  const own = trials.filter(({ workload_hash, number }) => workload_hash === hash && number > 0);
  const proposed = own
    .filter(({ origin, state }) => origin === "seed" && state !== "proposed")
    .sort((a, b) => a.number - b.number);
  const seeds = proposed.flatMap(({ median_us: us }, index) =>
    us === null ? [] : [{ place: index + 1, us }],
  );
  if (seeds.length === 0) return null;
  return {
    seeds,
    failed: proposed.length - seeds.length,
    rank: spearman(seeds.map(({ us }) => us)),
    fastestUs: Math.min(...own.flatMap(({ median_us: us }) => (us === null ? [] : [us]))),
  };
}

/** One run of the functions that have a first choice: with the first that ran of each, and with the fastest trials. */
export function runOfFirstChoices(job: Job, trials: readonly Trial[]) {
  const sum = { functions: 0, firstUs: 0, fastestUs: 0 };
  for (const { workload_hash, weight } of job.tasks) {
    const found = firstChoices(trials, workload_hash);
    const [first] = found?.seeds ?? [];
    if (!found || !first) continue;
    sum.functions += 1;
    sum.firstUs += weight * first.us;
    sum.fastestUs += weight * found.fastestUs;
  }
  return sum;
}

/** Spearman's rank correlation of the order of some values with their sizes: 1 if each is larger than those before. */
function spearman(values: readonly number[]): number | null {
  if (values.length < 3) return null;
  const sorted = [...values].sort((a, b) => a - b);
  // Equal values share the mean of their places.
  const places = values.map((value) => (sorted.indexOf(value) + sorted.lastIndexOf(value)) / 2);
  const middle = (values.length - 1) / 2;
  const sum = (term: (place: number, index: number) => number) =>
    places.reduce((total, place, index) => total + term(place - middle, index - middle), 0);
  const spread = sum((place) => place ** 2) * sum((_, index) => index ** 2);
  return spread === 0 ? null : sum((place, index) => place * index) / Math.sqrt(spread);
}
