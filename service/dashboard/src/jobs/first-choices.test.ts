import { expect, test } from "vitest";
import type { Job, Trial } from "../api/types";
import { firstChoices, runOfFirstChoices } from "./first-choices";

function trial(workload_hash: string, number: number, median_us: number | null, origin = "seed"): Trial {
  return {
    workload_hash,
    number,
    median_us,
    origin,
    state: median_us === null ? "failed" : "measured",
  } as Trial;
}

test("seeds have places in the order of their proposal, also those that failed", () => {
  const trials = [
    trial("w", 5, 10, "mutation"),
    trial("w", 4, 14),
    trial("w", 0, 900, "baseline"),
    trial("w", 1, 12),
    trial("w", 2, null),
    trial("w", 3, 13),
    trial("other", 1, 1),
    { ...trial("w", 6, null), state: "proposed" as const },
  ];
  expect(firstChoices(trials, "w")).toEqual({
    seeds: [
      { place: 1, us: 12 },
      { place: 3, us: 13 },
      { place: 4, us: 14 },
    ],
    failed: 1,
    rank: 1,
    fastestUs: 10,
  });
});

test.each([
  [[3, 2, 1], -1],
  [[1, 3, 2, 4], 0.8],
  // Equal latencies share a place: 1.5, 1.5 and 3 against 1, 2 and 3.
  [[5, 5, 9], 0.866],
  [[5, 5, 5], null],
  [[1, 2], null],
])("the rank correlation of the order %j is %d", (latencies, rank) => {
  const found = firstChoices(
    latencies.map((us, index) => trial("w", index + 1, us)),
    "w",
  );
  if (rank === null) expect(found?.rank).toBeNull();
  else expect(found?.rank).toBeCloseTo(rank, 3);
});

test("a function without a seed that ran has no first choice", () => {
  expect(firstChoices([trial("w", 1, 5, "random"), trial("w", 2, null)], "w")).toBeNull();
});

test("a run has the first choices that ran, each as often as the model calls it", () => {
  const tasks = [
    { workload_hash: "a", weight: 3 },
    { workload_hash: "b", weight: 1 },
    { workload_hash: "c", weight: 7 },
  ];
  const trials = [
    trial("a", 1, null),
    trial("a", 2, 20),
    trial("a", 3, 10, "mutation"),
    trial("b", 1, 5),
    trial("c", 1, 50, "transfer"),
  ];
  const job = { tasks } as Job;
  expect(runOfFirstChoices(job, trials)).toEqual({ functions: 2, firstUs: 65, fastestUs: 35 });
  expect(runOfFirstChoices(job, [])).toEqual({ functions: 0, firstUs: 0, fastestUs: 0 });
});
