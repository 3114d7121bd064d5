import { expect, it } from "vitest";
import type { Task } from "../api/types";
import { eventInWords } from "./event-words";

const job = { tasks: [{ workload_hash: "abc", name: "dense" } as Task] };
const words = (type: string, data: Record<string, unknown>) => eventInWords({ id: "1", type, data }, job);

it("each kind of event is told in a line", () => {
  expect(words("job", { state: "running", error: null })).toBe("The job is running.");
  expect(words("job", { state: "failed", error: "no worker" })).toBe("The job is failed: no worker");
  expect(
    words("task", { workload_hash: "abc", state: "succeeded", best_us: 12, speedup: 2, certified: true }),
  ).toBe("Task dense is succeeded; best 12.0\u00a0µs, 2.00×, certified.");
  expect(words("task", { workload_hash: "abc", state: "running", best_us: null, speedup: null })).toBe(
    "Task dense is running.",
  );
  expect(words("trial", { workload_hash: "abc", number: 3, state: "measured", median_us: 8.4 })).toBe(
    "Trial #3 of dense took 8.40\u00a0µs.",
  );
  expect(
    words("trial", {
      workload_hash: "abcdefabcdefabcd",
      number: 4,
      state: "failed",
      failure_kind: "TIMEOUT",
      failure_stage: "measure",
    }),
  ).toBe("Trial #4 of abcdefabcdef failed: TIMEOUT at measure.");
});
