import { expect, it } from "vitest";
import type { Roofline } from "../api/types";
import { boundInWords, ceilingOf, roofOf } from "./roofline";

const peaks: Roofline["peaks"] = {
  dtype: "float32",
  flops: 100e9,
  bytes_per_s: 20e9,
  measured_at: "2026-03-01T12:00:00Z",
};

it("the roof rises with the intensity up to the ridge and is flat from there", () => {
  const roof = roofOf({ peaks, intensity: 0.5 });
  expect(roof?.ridge).toBe(5);
  const [start, ridge, end] = roof?.line ?? [];
  expect(start?.[1]).toBeCloseTo((start?.[0] ?? 0) * 20e9);
  expect(ridge).toEqual([5, 100e9]);
  expect(end?.[1]).toBe(100e9);
  expect(roof?.from).toBeLessThan(0.5);
  expect(roof?.to).toBeGreaterThan(5);
});

it("below the ridge memory is the limit, above it arithmetic", () => {
  expect([0.5, 50].map((intensity) => boundInWords({ peaks, intensity }))).toEqual([
    "memory-bound",
    "compute-bound",
  ]);
  expect([0.5, 50].map((intensity) => ceilingOf({ peaks, intensity }))).toEqual([10e9, 100e9]);
});

it("says nothing of what is not known", () => {
  expect(roofOf({ peaks: null, intensity: 1 })).toBeNull();
  expect(roofOf({ peaks, intensity: null })).toBeNull();
  expect(boundInWords({ peaks: null, intensity: 1 })).toBeNull();
});
