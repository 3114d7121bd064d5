import { expect, it } from "vitest";
import { diffRows, withContext } from "./diff";

const told = (left: string[], right: string[]) =>
  diffRows(left, right).map(({ kind, left: l, right: r }) => [kind, l?.line ?? null, r?.line ?? null]);

it("lines that differ in the same place share a row, what is left over stands alone", () => {
  expect(told(["a", "x = 1", "c"], ["a", "x = 2", "y = 3", "c"])).toEqual([
    ["same", 0, 0],
    ["changed", 1, 1],
    ["added", null, 2],
    ["same", 2, 3],
  ]);
  expect(told(["a", "b", "c"], ["a"])).toEqual([
    ["same", 0, 0],
    ["removed", 1, null],
    ["removed", 2, null],
  ]);
  expect(told([], ["a"])).toEqual([["added", null, 0]]);
});

it("every line of both sides stands once", () => {
  const left = ["1", "2", "3", "4", "5", "6"];
  const right = ["0", "2", "x", "y", "5", "z", "w", "6"];
  const rows = diffRows(left, right);
  expect(rows.flatMap((row) => row.left?.line ?? []).map((line) => left[line])).toEqual(left);
  expect(rows.flatMap((row) => row.right?.line ?? []).map((line) => right[line])).toEqual(right);
});

it("says which words of a changed line are changed", () => {
  const [row] = diffRows(["for i in T.serial(64):"], ["for i in T.parallel(64):"]);
  const cut = (text: string, stretches: [number, number][] = []) =>
    stretches.map(([a, b]) => text.slice(a, b));
  expect(cut("for i in T.serial(64):", row?.left?.changed)).toEqual(["serial"]);
  expect(cut("for i in T.parallel(64):", row?.right?.changed)).toEqual(["parallel"]);
  const [deeper] = diffRows(["return x"], ["    return x"]);
  expect(deeper?.right?.changed).toEqual([]);
});

it("leaves out what is the same on both sides, save what stands near a change", () => {
  const left = Array.from({ length: 20 }, (_, index) => `line ${index}`);
  const right = left.map((line, index) => (index === 10 ? "other" : line));
  const shown = withContext(diffRows(left, right), 2);
  expect(shown.map((row) => (typeof row === "number" ? row : row.kind))).toEqual([
    8,
    "same",
    "same",
    "changed",
    "same",
    "same",
    7,
  ]);
});
