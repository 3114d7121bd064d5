import { describe, expect, it } from "vitest";
import { formatElapsed, formatGuess, formatMilliseconds, formatRelative } from "./time";

const now = new Date("2026-03-01T12:00:00Z");
const ago = (seconds: number) => formatRelative(new Date(now.getTime() - seconds * 1_000), now);

describe("formatRelative", () => {
  it.each([
    [2, "just now"],
    [59, "59 seconds ago"],
    [60, "1 minute ago"],
    [3_599, "59 minutes ago"],
    [7_200, "2 hours ago"],
    [86_400 * 3, "3 days ago"],
    [86_400 * 45, "1 month ago"],
    [86_400 * 800, "2 years ago"],
  ])("%d seconds back is %s", (seconds, words) => {
    expect(ago(seconds)).toBe(words);
  });

  it("takes a clock that runs ahead for now", () => {
    expect(ago(-30)).toBe("just now");
  });
});

it("elapsed time names its two largest units", () => {
  expect([8_400, 60_000, 200_000, 7_500_000, 7_200_000, -5].map(formatElapsed)).toEqual([
    "8 s",
    "1 min",
    "3 min 20 s",
    "2 h 5 min",
    "2 h",
    "0 s",
  ]);
});

it("short stretches keep their decimals", () => {
  expect([0, 350.4, 1_250, 30_000, 90_000].map(formatMilliseconds)).toEqual([
    "0\u00a0s",
    "350\u00a0ms",
    "1.25\u00a0s",
    "30\u00a0s",
    "1 min 30 s",
  ]);
});

it("a guess is told no finer than it is", () => {
  expect([1, 42, 61, 1_191, 10_400].map(formatGuess)).toEqual([
    "5 s",
    "40 s",
    "1 min",
    "20 min",
    "2 h 50 min",
  ]);
});
