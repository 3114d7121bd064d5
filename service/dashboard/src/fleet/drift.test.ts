import { expect, it } from "vitest";
import { driftInWords, driftShape } from "./drift";

const checks = (...timings: number[]) =>
  timings.map((us, minute) => ({ at: new Date(minute * 60_000).toISOString(), us }));

it("drift is said against the first timing", () => {
  expect([1, 1.0001, 1.032, 0.99, 1.4].map(driftInWords)).toEqual(["0%", "0%", "+3.2%", "−1.0%", "+40%"]);
});

it("the line runs over the whole width, slower is higher", () => {
  const shape = driftShape(checks(100, 100, 140));
  expect(shape?.points.map(([x]) => x)).toEqual([0, 50, 100]);
  const [first, , last] = shape?.points.map(([, y]) => y) ?? [];
  expect(last).toBeLessThan(first as number);
  expect(shape?.firstY).toBe(first);
});

it("noise of a percent stays small", () => {
  const heights = driftShape(checks(100, 101, 100))?.points.map(([, y]) => y) ?? [];
  expect(Math.max(...heights) - Math.min(...heights)).toBeLessThan(10);
});

it("one timing is no line", () => {
  expect(driftShape(checks(100))).toBeNull();
});
