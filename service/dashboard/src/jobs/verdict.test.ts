import { expect, test } from "vitest";
import type { Job, StoredComparison, Task } from "../api/types";
import { costInWords, libraryIsFaster, restInWords, speedInWords, stateInWords } from "./verdict";

function task(name: string, changes: Partial<Task> = {}): Task {
  return {
    name,
    source: null,
    weight: 1,
    best_us: 50,
    speedup: 4,
    library: null,
    model_share: 0.5,
    ...changes,
  } as Task;
}

function job(changes: Partial<Job> = {}): Job {
  return {
    state: "succeeded",
    activity: null,
    device_s: 0,
    started_at: null,
    finished_at: null,
    progress: { trials: 12, failed: 0, total: 64, time_left_s: null },
    tasks: [task("matmul", { source: "head", model_share: 0.7 }), task("relu", { model_share: 0.3 })],
    model: { baseline_us: 300, best_us: 90, measured_us: 100, latency_us: 100, speedup: 3 },
    ...changes,
  } as Job;
}

const plain = (text: string) => text.replaceAll("\u00a0", " ");

test("a running job says what it does, and how long its search still takes", () => {
  expect(stateInWords(job({ state: "running", activity: "closing race, 3 of 15" }))).toBe(
    "Closing race, 3 of 15.",
  );
  const progress = { trials: 1, failed: 0, total: 64, time_left_s: 90 };
  expect(stateInWords(job({ state: "running", activity: "searching", progress }))).toMatch(
    /^Searching, about .* left\.$/,
  );
  expect(stateInWords(job({ state: "running" }))).toBe("Starting.");
  expect(stateInWords(job())).toMatch(/^Done/);
});

test("a model is compared with itself untuned and with the fastest engine beside it", () => {
  const engines = [
    { title: "Loopwright", ratio: null },
    { title: "PyTorch", ratio: { value: 2.5, low: 2, high: 3 } },
    { title: "ONNX Runtime", ratio: { value: 0.7, low: 0.6, high: 0.8 } },
  ];
  const [own, rival] = speedInWords(job(), { engines } as unknown as StoredComparison).map(plain);
  expect(own).toBe(
    "One run of the model takes 100 µs (measured as one program): 3.0× faster than the program without schedules.",
  );
  expect(rival).toBe("Beside other engines: 1.4× slower than ONNX Runtime, the fastest of them.");
  // As many digits as the interval bears.
  const alone = { engines: [{ title: "PyTorch", ratio: { value: 122.5, low: 9.1, high: 455.6 } }] };
  expect(speedInWords(job(), alone as unknown as StoredComparison).at(-1)).toBe(
    "Beside other engines: 100× faster than PyTorch, the fastest of them.",
  );
});

test("functions in which a library is faster are named, and equal ones are not", () => {
  const slow = task("matmul", { source: "fc", library: { name: "MKL", us: 25 } as Task["library"] });
  const alike = task("add", { library: { name: "NumPy", us: 49.9 } as Task["library"] });
  expect([slow, alike].map(libraryIsFaster)).toEqual([true, false]);
  expect(speedInWords(job({ tasks: [slow, alike] }))[1]).toBe(
    "A library is faster in 1 function: fc (MKL, 2.0×).",
  );
});

test("a job of one function has the function's speedup", () => {
  const only = task("matmul", {
    interval: { value: 4, low: 3.9, high: 4.1 } as NonNullable<Task["interval"]>,
  });
  expect(speedInWords(job({ tasks: [only], model: null })).map(plain)).toEqual([
    "One call takes 50.0 µs: 4.00× faster than the program without a schedule.",
  ]);
  expect(restInWords(job({ tasks: [only] }))).toBeNull();
});

test("what is left is in the functions with the largest shares, once all are known", () => {
  expect(restInWords(job())).toBe("Most of the time is in head (70%) and relu (30%).");
  const dominated = [task("conv", { model_share: 0.98 }), task("relu", { model_share: 0.02 })];
  expect(restInWords(job({ tasks: dominated }))).toBe("Most of the time is in conv (98%).");
  expect(restInWords(job({ tasks: [task("a"), task("b"), task("c", { model_share: null })] }))).toBeNull();
});

test("a job says what it cost", () => {
  const times = { started_at: "2030-01-01T00:00:00Z", finished_at: "2030-01-01T00:02:00Z" };
  expect(costInWords(job({ device_s: 33, ...times }))).toMatch(
    /^It took 12 trials, .*33.* in measuring slots, .* altogether\.$/,
  );
  expect(costInWords(job({ state: "running" }))).toBe("Until now 12 trials.");
});
