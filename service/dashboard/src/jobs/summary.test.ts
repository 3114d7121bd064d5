import { expect, it } from "vitest";
import type { Job, Task, Trial } from "../api/types";
import { budgetInWords, costliestTask, failuresInWords, trialName } from "./summary";

it("failures are said in words, the most frequent first", () => {
  expect(failuresInWords({ TIMEOUT: 1, COMPILE: 3, CRASH: 0 })).toBe("3 did not compile, 1 timed out");
  expect(failuresInWords({})).toBe("");
});

it("a budget names each limit that it has", () => {
  expect(budgetInWords({ max_trials: 64, max_seconds: null })).toBe("64 trials");
  expect(budgetInWords({ max_trials: 1, max_seconds: 600 })).toBe("1 trial or 10 min");
  expect(
    budgetInWords({ max_trials: 2000, max_device_seconds: 60, target_latency_us: 1500, until: "plateau" }),
  ).toBe("2,000 trials or 1 min on devices or a model latency of 1.50\u00a0ms or a plateau");
});

it("the task to look at first is the one that the model spends most time in", () => {
  const task = (name: string, weight: number, baseline_us: number | null) =>
    ({ name, weight, baseline_us }) as Task;
  const tasks = [task("light", 1, 50), task("heavy", 12, 10), task("unknown", 99, null)];
  expect(costliestTask({ tasks } as Job)?.name).toBe("heavy");
  expect(costliestTask({ tasks: [] as Task[] } as Job)).toBeUndefined();
});

it("a trial's number says which it is only within its task", () => {
  const trial = { number: 3, workload_hash: "b" } as Trial;
  const tasks = ["a", "b"].map((name) => ({ name: `task ${name}`, workload_hash: name }) as Task);
  expect(trialName({ tasks }, trial)).toBe("task b #3");
  expect(trialName({ tasks: tasks.slice(1) }, trial)).toBe("#3");
  const alike = tasks.map((task) => ({ ...task, source: "layers.0" }));
  expect(trialName({ tasks: alike }, trial)).toBe("layers.0 (task b) #3");
});
