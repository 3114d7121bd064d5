import { expect, it } from "vitest";
import { budgetInWords, failuresInWords } from "./summary";

it("failures are said in words, the most frequent first", () => {
  expect(failuresInWords({ TIMEOUT: 1, COMPILE: 3, CRASH: 0 })).toBe("3 did not compile, 1 timed out");
  expect(failuresInWords({})).toBe("");
});

it("a budget names each limit that it has", () => {
  expect(budgetInWords({ max_trials: 64, max_seconds: null })).toBe("64 trials");
  expect(budgetInWords({ max_trials: 1, max_seconds: 600 })).toBe("1 trial or 10 min");
});
