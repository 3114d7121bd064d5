import { expect, it } from "vitest";
import type { DecisionColumn, DecisionRow, Decisions } from "../api/types";
import { brushedRows, parseBrush, tellingColumns, writeBrush } from "./brush";

const column = (name: string, importance: number | null): DecisionColumn => ({
  name,
  kind: "tile",
  log: true,
  categories: null,
  importance,
});
const row = (record_id: string, median_us: number, ...values: (number | null)[]): DecisionRow => ({
  record_id,
  median_us,
  origin: "random",
  certified: false,
  values,
});
const decisions: Decisions = {
  device_class: "d",
  columns: [column("tile i[0]", 0.2), column("unroll~max", 0.7), column("constant", 0.1)],
  rows: [row("a", 10, 4, 16, 1), row("b", 20, 8, 64, 1), row("c", 30, null, 512, 1)],
};
const ids = (words: string[]) => brushedRows(decisions, parseBrush(words)).map((each) => each.record_id);

it("a brush survives its way through the address", () => {
  const brush = { "tile i[0]": [4, 8] as [number, number], "unroll~max": [1, 2.5] as [number, number] };
  expect(parseBrush(writeBrush(brush))).toEqual(brush);
  expect(parseBrush(["nonsense", "x~a~b", "~1~2"])).toEqual({});
});

it("rows are those within every interval; a row without the choice is not", () => {
  expect(ids([])).toEqual(["a", "b", "c"]);
  expect(ids(["tile i[0]~1~100"])).toEqual(["a", "b"]);
  expect(ids(["tile i[0]~1~100", "latency~15~25"])).toEqual(["b"]);
  expect(ids(["unroll~max~600~100"])).toEqual(["c"]);
  expect(ids(["of another space~1~2"])).toEqual(["a", "b", "c"]);
});

it("shown are the columns that matter, in the program's order, and none that never varies", () => {
  expect(tellingColumns(decisions, 9)).toEqual([0, 1]);
  expect(tellingColumns(decisions, 1)).toEqual([1]);
});
