import { expect, test } from "vitest";
import type { Job, Task } from "../api/types";
import { comparable, jobDiff, jobFacts } from "./job-diff";

const task = (name: string, best_us: number | null, weight = 1) =>
  ({ name, source: null, workload_hash: name, weight, best_us }) as Task;
const job = (device_class: string, ...tasks: Task[]) => ({ device_class, tasks }) as Job;

test("functions are matched by their digest, and those that matter most come first", () => {
  const left = job("d", task("small", 2), task("large", 40, 3), task("gone", 5));
  const right = job("d", task("large", 20, 3), task("small", 1), task("new", null));
  const pairs = jobDiff(left, right);
  expect(pairs.map(({ name, ratio }) => [name, ratio])).toEqual([
    ["large", 2],
    ["gone", null],
    ["small", 2],
    ["new", null],
  ]);
});

test("timings of different device classes are not divided", () => {
  const left = job("d", task("mm", 2));
  const right = job("e", task("mm", 1));
  expect(comparable(left, right)).toBe(false);
  expect(jobDiff(left, right)[0]?.ratio).toBeNull();
});

test("what differs stands apart", () => {
  const facts = {
    Class: ({ device_class }: Job) => device_class,
    Tasks: ({ tasks }: Job) => `${tasks.length}`,
  };
  const { different, same } = jobFacts(facts, job("d"), job("e"));
  expect(different).toEqual([{ label: "Class", left: "d", right: "e" }]);
  expect(same).toEqual([{ label: "Tasks", left: "0", right: "0" }]);
});
