import { expect, it } from "vitest";
import type { Roofline } from "../api/types";
import { labelsOf, reachedOf, roofInWords, roofOf } from "./roofline";

const peaks: Roofline["peaks"] = {
  dtype: "float32",
  flops: 100e9,
  bytes_per_s: 20e9,
  measured_at: "2026-03-01T12:00:00Z",
  caches: [
    { name: "L1", bytes: 2 ** 16, bytes_per_s: 200e9 },
    { name: "L2", bytes: 2 ** 21, bytes_per_s: 50e9 },
  ],
};

it("each memory rises to the arithmetic, which is flat, and one of them limits", () => {
  const roof = roofOf({ peaks, intensity: 0.25, limit: "L2" });
  expect(roof?.lines.map(({ name, limits }) => [name, limits])).toEqual([
    ["DRAM", false],
    ["L2", true],
    ["L1", false],
    ["arithmetic", false],
  ]);
  const [dram, l2, , arithmetic] = roof?.lines ?? [];
  const [start, ridge] = dram?.points ?? [];
  expect(start?.[1]).toBeCloseTo((start?.[0] ?? 0) * 20e9);
  expect(ridge).toEqual([5, 100e9]);
  expect(l2?.points[1]).toEqual([2, 100e9]);
  expect(arithmetic?.points.map(([, flops]) => flops)).toEqual([100e9, 100e9]);
  expect(arithmetic?.points[0]?.[0]).toBe(0.5);
  expect(roof?.from).toBeLessThan(0.25);
  expect(roof?.to).toBeGreaterThan(5);
});

it("memories that end close to each other have one label, at the end of the slowest", () => {
  const roof = roofOf({ peaks, intensity: 0.25, limit: "L2" });
  expect(labelsOf(roof?.lines ?? [])).toEqual(["L2, DRAM", "", "L1", "arithmetic"]);
  const caches = [
    { name: "L1", bytes: 2 ** 16, bytes_per_s: 90e9 },
    { name: "L2", bytes: 2 ** 21, bytes_per_s: 50e9 },
  ];
  const close = roofOf({ peaks: { ...peaks, caches }, intensity: 0.25, limit: "L2" });
  expect(labelsOf(close?.lines ?? [])).toEqual(["L1, L2, DRAM", "", "", "arithmetic"]);
});

it("the limits are in words with their rates", () => {
  const roof = roofOf({ peaks: { ...peaks, caches: [] }, intensity: 50, limit: "arithmetic" });
  expect(roof && roofInWords(roof, (name, rate) => `${name} ${Math.round(rate / 1e9)}`)).toBe(
    "DRAM 20, arithmetic 100 (the limit)",
  );
});

it("the best reaches the share of its limit that the service gives", () => {
  const best = { name: "best" as const, us: 40, flops: 1e9, peak_share: null };
  expect(reachedOf({ points: [best], roof_us: 10 })).toBe(0.25);
  expect(reachedOf({ points: [best], roof_us: 44 })).toBe(1);
  expect(reachedOf({ points: [best], roof_us: null })).toBeNull();
});

it("says nothing of what is not known", () => {
  expect(roofOf({ peaks: null, intensity: 1, limit: "DRAM" })).toBeNull();
  expect(roofOf({ peaks, intensity: null, limit: "DRAM" })).toBeNull();
  expect(roofOf({ peaks, intensity: 1, limit: null })).toBeNull();
});
