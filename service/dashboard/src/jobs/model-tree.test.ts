import { expect, test } from "vitest";
import type { Task } from "../api/types";
import { modelTree, pathOf, treeInWords } from "./model-tree";

function task(name: string, sources: string[], weight: number, baseline: number, best: number | null): Task {
  return { name, sources, weight, baseline_us: baseline, best_us: best } as Task;
}

test("the time of a function is where the model calls it, in equal parts", () => {
  const tree = modelTree(
    [task("matmul", ["layers.0.up", "layers.1.up"], 2, 30, 3), task("norm", ["head.norm"], 1, 5, 5)],
    "baseline_us",
  );
  expect(tree.map(({ name, value }) => [name, value])).toEqual([
    ["layers", 60],
    ["head.norm", 5],
  ]);
  expect(tree[0]?.children).toEqual([
    { name: "0.up", value: 30, children: [] },
    { name: "1.up", value: 30, children: [] },
  ]);
});

test("functions of one module stand in it by their names, and one without a source by itself", () => {
  const tree = modelTree(
    [task("matmul", ["fc"], 1, 8, 2), task("relu", ["fc"], 1, 2, 1), task("take", [], 3, 1, null)],
    "best_us",
  );
  expect(tree).toEqual([
    {
      name: "fc",
      value: 3,
      children: [
        { name: "matmul", value: 2, children: [] },
        { name: "relu", value: 1, children: [] },
      ],
    },
    { name: "take", value: 0, children: [] },
  ]);
});

test("paths of modules and nodes have parts, and a line of code has none", () => {
  expect(pathOf("encoder.layer.0.query")).toEqual(["encoder", "layer", "0", "query"]);
  expect(pathOf("/enc/layers.0/MatMul")).toEqual(["enc", "layers", "0", "MatMul"]);
  expect(pathOf("model.py:14")).toEqual(["model.py:14"]);
  expect(pathOf("main:9")).toEqual(["main:9"]);
});

test("a tree is said in words, the largest part first, also without any time", () => {
  const percent = (share: number) => `${Math.round(100 * share)}%`;
  const leaf = (name: string, value: number) => ({ name, value, children: [] });
  expect(treeInWords([leaf("head", 25), leaf("layers", 75)], percent)).toBe("layers 75%, head 25%");
  expect(treeInWords([leaf("head", 0)], percent)).toBe("head 0%");
});
