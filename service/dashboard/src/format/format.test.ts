import { expect, it } from "vitest";
import { summariseSamples } from "./samples";
import { formatTarget, formatTargets } from "./target";
import { formatTensors } from "./tensor";

it("a target is its kind and what tells it apart", () => {
  expect(formatTarget({ kind: "llvm", mcpu: "znver4", "num-cores": 8 })).toBe("llvm · znver4");
  expect(formatTarget({ kind: "cuda", arch: "sm_90" })).toBe("cuda · sm_90");
  expect(formatTarget({ kind: "llvm" })).toBe("llvm");
  expect(formatTarget({})).toBe("unknown");
});

it("targets that would read the same are shown in full", () => {
  const own = { kind: "llvm", mcpu: "znver4" };
  expect(formatTargets([own, { kind: "llvm", mcpu: "x86-64-v3" }])).toEqual([
    "llvm · znver4",
    "llvm · x86-64-v3",
  ]);
  expect(formatTargets([own, { ...own, mattr: ["-avx512f"] }])).toEqual([
    '{"kind":"llvm","mcpu":"znver4"}',
    '{"kind":"llvm","mcpu":"znver4","mattr":["-avx512f"]}',
  ]);
});

it("samples in seconds are summarised in microseconds", () => {
  const summary = summariseSamples([4e-6, 1e-6, 3e-6, 2e-6]);
  expect(summary?.count).toBe(4);
  expect(summary?.median).toBeCloseTo(2.5);
  expect(summary?.min).toBeCloseTo(1);
  expect(summary?.max).toBeCloseTo(4);
  expect(summary?.quartiles[0]).toBeCloseTo(1.75);
  expect(summary?.quartiles[1]).toBeCloseTo(3.25);
});

it("no samples have no summary", () => {
  expect(summariseSamples([])).toBeNull();
});

it("arguments of one type name it once", () => {
  const f32 = (...shape: number[]) => ({ shape, dtype: "float32" });
  expect(formatTensors([f32(1, 784), f32(784, 128), f32()])).toBe("1×784, 784×128, scalar float32");
  expect(formatTensors([f32(8), { shape: [4], dtype: "int8" }])).toBe("8 float32, 4 int8");
  expect(formatTensors([])).toBe("");
});
