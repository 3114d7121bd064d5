import { expect, it } from "vitest";
import { combinations, parseExtents, parseLabels, parseSpace, parseTargets } from "./words";

it("reads extents with one value or several, and says when it cannot", () => {
  expect(parseExtents("n=128, m = 64,")).toEqual({ n: [128], m: [64] });
  expect(parseExtents("n=1, 64,256, m=8")).toEqual({ n: [1, 64, 256], m: [8] });
  expect(parseExtents(" , ")).toEqual({});
  for (const bad of ["n: 128", "64", "n=", "n=-1", "n=1..8", "2n=1"]) expect(parseExtents(bad)).toBeNull();
});

it("combines the values of extents", () => {
  expect(combinations({})).toEqual([]);
  expect(combinations({ n: [1, 64], m: [8, 9] })).toEqual([
    { n: 1, m: 8 },
    { n: 1, m: 9 },
    { n: 64, m: 8 },
    { n: 64, m: 9 },
  ]);
});

it("reads labels, each key once", () => {
  expect(parseLabels("rack=a, gpu = h200,")).toEqual({ rack: "a", gpu: "h200" });
  expect(parseLabels("")).toEqual({});
  for (const bad of ["rack", "rack=a, rack=b", "a=b=c", "=a", "rack=two words"])
    expect(parseLabels(bad)).toBeNull();
});

it("reads a target a line, as text or JSON", () => {
  expect(parseTargets('llvm -mcpu=znver3\n\n {"kind": "cuda", "arch": "sm_90"} ')).toEqual([
    "llvm -mcpu=znver3",
    { kind: "cuda", arch: "sm_90" },
  ]);
  expect(parseTargets('{"kind": "llvm"')).toBeNull();
});

it("takes a list for a design space, and nothing else", () => {
  expect(parseSpace("[[[], []]]")).toEqual([[[], []]]);
  for (const bad of ['{"traces": []}', "null", "[", ""]) expect(parseSpace(bad)).toBeNull();
});
