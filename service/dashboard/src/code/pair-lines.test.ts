import { expect, it } from "vitest";
import { pairLines } from "./pair-lines";

it("a changed line is found among new ones", () => {
  const before = ['with T.sblock("matmul"):', "T.writes(Y[vi, vj])"];
  const after = [
    "for i in T.parallel(8):",
    'with T.sblock("matmul_init"):',
    "T.reads()",
    "T.writes(Y[vi, vj + 1])",
  ];
  expect(pairLines(before, after)).toEqual([
    [0, 1],
    [1, 3],
  ]);
});

it("lines that have little in common are not paired", () => {
  expect(pairLines(["for i, j in T.grid(4, 4):"], ["return x"])).toEqual([]);
  expect(pairLines([], ["a"])).toEqual([]);
});

it("pairs keep the order of both sides", () => {
  expect(pairLines(["a b c", "d e f"], ["d e f", "a b c"])).toHaveLength(1);
});
