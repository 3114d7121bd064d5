import { expect, it } from "vitest";
import type { JobChanged, RecheckResult, Task, TaskChanged, TrialFinished } from "../api/types";
import { eventInWords } from "./event-words";

const AT = "2026-03-01T12:00:00Z";
const job = { tasks: [{ workload_hash: "abc", name: "dense" } as Task] };

const jobWords = (data: Omit<JobChanged, "at">) =>
  eventInWords({ id: "1", type: "job", data: { ...data, at: AT } }, job);
const taskWords = (change: Partial<TaskChanged>) => {
  const running = { workload_hash: "abc", state: "running", baseline_us: null, best_us: null } as const;
  const data = { ...running, speedup: null, certified: false, at: AT, ...change };
  return eventInWords({ id: "1", type: "task", data }, job);
};
const trialWords = (data: Partial<TrialFinished>) =>
  eventInWords({ id: "1", type: "trial", data: data as TrialFinished }, job);

it("an event of a job says its state and its error", () => {
  expect(jobWords({ state: "running", error: null })).toBe("The job is running.");
  expect(jobWords({ state: "failed", error: "no worker" })).toBe("The job has failed: no worker");
});

it("an event of a task says its best once it is certified", () => {
  expect(taskWords({})).toBe("Task dense is running.");
  expect(taskWords({ state: "succeeded", best_us: 12, speedup: 2, certified: true })).toBe(
    "Task dense has succeeded; best 12.0\u00a0µs, 2.0×, certified.",
  );
});

it("an event of a trial says how long it took or why it failed", () => {
  expect(trialWords({ workload_hash: "abc", number: 3, median_us: 8.4 })).toBe(
    "Trial #3 of dense took 8.40\u00a0µs.",
  );
  const failure = { median_us: null, failure_kind: "TIMEOUT", failure_stage: "run" } as const;
  expect(trialWords({ workload_hash: "abcdefabcdefabcd", number: 4, ...failure })).toBe(
    "Trial #4 of abcdefabcdef failed: TIMEOUT at run.",
  );
});

it("an event of a recheck says what came of it", () => {
  const words = (result: Partial<RecheckResult>) =>
    eventInWords(
      {
        id: "1",
        type: "recheck",
        data: { workload_hash: "abc", name: "dense", result: result as RecheckResult, at: AT },
      },
      { tasks: [] },
    );
  expect(words({ verdict: "regression", best_us: 54.1, message: null })).toBe(
    "The best of dense was raced again: regression, 54.1\u00a0µs now.",
  );
  expect(words({ verdict: "failed", best_us: null, message: "argument 2 differs" })).toBe(
    "The best of dense was raced again: failed; argument 2 differs.",
  );
});
