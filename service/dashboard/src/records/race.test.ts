import { expect, it } from "vitest";
import type { Certificate } from "../api/types";
import { type Contender, relativeSpeed } from "./race";

const certificate = {
  best_us: 100,
  baseline_us: 1000,
  speedup: 10,
  interval: { value: 10, low: 8, high: 12 },
  runner_up: { candidate: "second", slowdown: { value: 1.25, low: 1.2, high: null } },
} as Certificate;
const common = { workload_hash: "w", device_class: "d", is_baseline: false };
// When it was tried alone, the machine was busy: the others look faster.
const best: Contender = { ...common, candidate: "first", median_us: 300, certificate };
const second: Contender = { ...common, candidate: "second", median_us: 200, certificate: null };
const third: Contender = { ...common, candidate: "third", median_us: 150, certificate: null };
const baseline: Contender = { ...common, candidate: "baseline", is_baseline: true, median_us: 250 };

it("what ran in one race is compared by the race, on either side", () => {
  expect(relativeSpeed(best, baseline)).toEqual({
    value: 10,
    interval: { value: 10, low: 8, high: 12 },
    us: [100, 1000],
    raced: true,
  });
  expect(relativeSpeed(baseline, best)).toEqual({
    value: 0.1,
    interval: { low: 1 / 12, high: 1 / 8 },
    us: [1000, 100],
    raced: true,
  });
  expect(relativeSpeed(best, second)).toMatchObject({ value: 1.25, us: [100, 125], raced: true });
  expect(relativeSpeed(second, best)).toMatchObject({ value: 0.8, interval: { low: 0, high: 1 / 1.2 } });
});

it("others are compared by the samples of their trials", () => {
  const alone = { value: 0.5, interval: null, us: [300, 150], raced: false };
  expect(relativeSpeed(best, third)).toEqual(alone);
  expect(relativeSpeed(best, { ...second, device_class: "other" }).raced).toBe(false);
  expect(relativeSpeed(best, { ...baseline, workload_hash: "other" }).raced).toBe(false);
  expect(relativeSpeed(best, best)).toMatchObject({ value: 1, raced: false });
});
