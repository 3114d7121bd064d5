import { expect, it } from "vitest";
import { hasDecisions, traceLines } from "./trace";

it("writes one instruction a line, with its decision", () => {
  const trace = [
    [
      ["GetSBlock", [], ["matmul", "main"], ["b0"]],
      ["SamplePerfectTile", ["l1"], [2, 64], ["v4", "v5"]],
      ["EnterPostproc", [], [], []],
    ],
    [[1, [8, 16]]],
  ];
  expect(traceLines(trace)).toEqual([
    'b0 = GetSBlock("matmul", "main")',
    "v4, v5 = SamplePerfectTile(l1, 2, 64)  # [8,16]",
    "EnterPostproc()",
  ]);
  expect(hasDecisions(trace)).toBe(true);
  expect(hasDecisions([trace[0], []])).toBe(false);
  expect(hasDecisions(null)).toBe(false);
});

it("shows a trace of another shape as it is", () => {
  expect(traceLines([{ odd: 1 }]).join("")).toContain('"odd": 1');
});
