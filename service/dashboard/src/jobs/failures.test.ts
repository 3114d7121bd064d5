import { expect, it } from "vitest";
import type { Trial } from "../api/types";
import { failureGroups, namesInWords } from "./failures";

const failed = (number: number, kind: Trial["failure_kind"], message: string | null) =>
  ({
    number,
    state: "failed",
    failure_kind: kind,
    failure_stage: "build",
    failure_message: message,
  }) as Trial;

it("failures that say the same stand together, the most frequent first", () => {
  const trials = [
    failed(4, "TIMEOUT", "no answer within 10 s"),
    failed(9, "COMPILE", "LLVM: out of registers\n"),
    failed(2, "COMPILE", "LLVM: out of registers"),
    { number: 1, state: "measured" } as Trial,
    failed(5, "CRASH", null),
  ];
  expect(failureGroups({ tasks: [] }, trials)).toEqual([
    { kind: "COMPILE", stage: "build", message: "LLVM: out of registers", trials: ["#9", "#2"] },
    { kind: "TIMEOUT", stage: "build", message: "no answer within 10 s", trials: ["#4"] },
    { kind: "CRASH", stage: "build", message: "There is no error message.", trials: ["#5"] },
  ]);
});

it("a task is named once, before its trials", () => {
  expect(namesInWords(["fc#1 #3", "fc#1 #7", "conv #2", "fc#1 #8"])).toBe("fc#1 #3, #7, conv #2, fc#1 #8");
});

it("long lists are cut", () => {
  expect(namesInWords(["#1", "#2"])).toBe("#1, #2");
  expect(namesInWords(Array.from({ length: 15 }, (_, index) => `#${index}`))).toMatch(/#11 and 3 more$/);
});
