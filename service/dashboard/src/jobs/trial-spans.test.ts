import { expect, it } from "vitest";
import type { Span, Task, Trial } from "../api/types";
import { lanesOf, timeByStage } from "./trial-spans";

const JOB = { created_at: "2026-03-01T12:00:00Z", started_at: "2026-03-01T12:00:00Z", tasks: [], phases: [] };
const second = (at: number) => new Date(Date.parse(JOB.started_at) + at * 1_000).toISOString();
const span = (stage: Span["stage"], worker: string, from: number, to: number): Span => ({
  stage,
  worker,
  started_at: second(from),
  finished_at: second(to),
});
const trial = (number: number, ...spans: Span[]) => ({ id: String(number), number, spans }) as Trial;

it("trials proposed together share one slice", () => {
  const lanes = lanesOf(
    JOB,
    [trial(1, span("propose", "loop", 0, 1)), trial(2, span("propose", "loop", 0, 1))],
    0,
  );
  expect(lanes).toHaveLength(1);
  expect(lanes[0]?.slices).toEqual([
    { kind: "propose", words: "", worker: "loop", start: 0, end: 1_000, trials: ["#1", "#2"] },
  ]);
});

it("builds that overlap on one machine stand in lanes of their own, measuring last", () => {
  const trials = [
    trial(1, span("build", "a", 1, 3), span("measure", "a", 3, 4)),
    trial(2, span("build", "a", 2, 4), span("measure", "a", 4, 5)),
    trial(3, span("build", "a", 3, 5)),
  ];
  const lanes = lanesOf(JOB, trials, 0);
  expect(lanes.map(({ label, slices }) => [label, slices.flatMap(({ trials }) => trials)])).toEqual([
    ["build · a 1", ["#1", "#3"]],
    ["build · a 2", ["#2"]],
    ["measure · a", ["#1", "#2"]],
  ]);
  expect(timeByStage(lanes)).toMatchObject({ propose: 0, build: 6_000, measure: 2_000 });
});

it("trials without times have no lanes", () => {
  expect(lanesOf(JOB, [trial(1)], 0)).toEqual([]);
});

it("the job's phases come first, the last one until now, and its certificates last", () => {
  const phase = (activity: string, from: number, to: number | null) => ({
    activity,
    started_at: second(from),
    finished_at: to === null ? null : second(to),
  });
  const certified = { name: "mm", certified: true, answered_from: "search", finished_at: second(7) };
  const known = { ...certified, answered_from: "database" };
  const job = {
    ...JOB,
    phases: [phase("in the queue", -2, 0), phase("searching", 0, 6), phase("closing races", 6, null)],
    tasks: [certified, known] as Task[],
  };
  const lanes = lanesOf(job, [trial(1, span("build", "a", 1, 3))], Date.parse(second(9)));
  expect(lanes.map(({ label, slices }) => [label, slices.map(({ start, end }) => [start, end])])).toEqual([
    [
      "job",
      [
        [-2_000, 0],
        [0, 6_000],
        [6_000, 9_000],
      ],
    ],
    ["build · a", [[1_000, 3_000]]],
    ["certificates", [[7_000, 7_000]]],
  ]);
  expect(timeByStage(lanes)).toMatchObject({ build: 2_000, measure: 0 });
});
