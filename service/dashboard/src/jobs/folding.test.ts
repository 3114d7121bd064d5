import { expect, test } from "vitest";
import type { Task } from "../api/types";
import { commonError, foldTasks, shareOf } from "./folding";

function task(
  name: string,
  share: number | null,
  baseline: number | null,
  error: string | null = null,
): Task {
  return {
    workload_hash: name,
    name,
    weight: 1,
    state: "succeeded",
    trials: 0,
    baseline_us: baseline,
    best_us: 1,
    speedup: 1,
    certified: true,
    answered_from: "search",
    record_id: null,
    failures: {},
    error,
    model_share: share,
    budget_share: null,
    library: null,
  };
}

const names = (tasks: Task[]) => tasks.map((each) => each.name);
const MODEL = [
  task("tiny", 0.004, 1),
  task("was large", 0.005, 500),
  task("large", 0.6, 400),
  task("middle", 0.3, 90),
  task("failed", 0.001, 0.1, "no candidate ran"),
  task("small", 0.09, 9),
];

test("tasks come by their share of the model's time, and those that hardly count stand apart", () => {
  const { shown, folded } = foldTasks(MODEL);
  expect(names(shown)).toEqual(["large", "middle", "small", "was large", "failed"]);
  expect(names(folded)).toEqual(["tiny"]);
  expect(shareOf(folded)).toBeCloseTo(0.004);
});

test("nothing is folded while a latency is missing, nor in a model of few tasks", () => {
  expect(foldTasks([...MODEL, task("unknown", null, null)]).folded).toEqual([]);
  expect(foldTasks(MODEL.slice(0, 5)).folded).toEqual([]);
});

test("an error of several tasks is common unless another has another one", () => {
  const late = [task("a", null, null, "no time"), task("b", null, null, "no time"), task("c", 0.5, 1)];
  expect(commonError(late)).toBe("no time");
  expect(commonError(late.slice(1))).toBeNull();
  expect(commonError([...late, task("d", null, null, "no candidate ran")])).toBeNull();
});
