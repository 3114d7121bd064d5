import { expect, it } from "vitest";
import type { Span, Trial } from "../api/types";
import { lanesOf, timeByStage } from "./trial-spans";

const JOB = { created_at: "2026-03-01T12:00:00Z", started_at: "2026-03-01T12:00:00Z", tasks: [] };
const second = (at: number) => new Date(Date.parse(JOB.started_at) + at * 1_000).toISOString();
const span = (stage: Span["stage"], worker: string, from: number, to: number): Span => ({
  stage,
  worker,
  started_at: second(from),
  finished_at: second(to),
});
const trial = (number: number, ...spans: Span[]) => ({ id: String(number), number, spans }) as Trial;

it("trials proposed together share one slice", () => {
  const lanes = lanesOf(JOB, [
    trial(1, span("propose", "loop", 0, 1)),
    trial(2, span("propose", "loop", 0, 1)),
  ]);
  expect(lanes).toHaveLength(1);
  expect(lanes[0]?.slices).toEqual([
    { stage: "propose", worker: "loop", start: 0, end: 1_000, trials: ["#1", "#2"] },
  ]);
});

it("builds that overlap on one machine stand in lanes of their own, measuring last", () => {
  const lanes = lanesOf(JOB, [
    trial(1, span("build", "a", 1, 3), span("measure", "a", 3, 4)),
    trial(2, span("build", "a", 2, 4), span("measure", "a", 4, 5)),
    trial(3, span("build", "a", 3, 5)),
  ]);
  expect(lanes.map(({ label, slices }) => [label, slices.flatMap(({ trials }) => trials)])).toEqual([
    ["build · a 1", ["#1", "#3"]],
    ["build · a 2", ["#2"]],
    ["measure · a", ["#1", "#2"]],
  ]);
  expect(timeByStage(lanes)).toEqual({ propose: 0, build: 6_000, measure: 2_000 });
});

it("trials without times have no lanes", () => {
  expect(lanesOf(JOB, [trial(1)])).toEqual([]);
});
