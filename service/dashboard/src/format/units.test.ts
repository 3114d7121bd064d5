import { describe, expect, it } from "vitest";
import {
  formatLatency,
  formatLatencyTick,
  formatScaled,
  formatShare,
  formatSmall,
  formatSpeedup,
  formatSpeedupInterval,
  plural,
} from "./units";

describe("formatLatency", () => {
  it.each([
    [0.043, "43.0\u00a0ns"],
    [0.43, "430\u00a0ns"],
    [8.412, "8.41\u00a0µs"],
    [18.46, "18.5\u00a0µs"],
    [999.4, "999\u00a0µs"],
    [999.6, "1.00\u00a0ms"],
    [5_230, "5.23\u00a0ms"],
    [2.5e6, "2.50\u00a0s"],
    [0, "0\u00a0µs"],
  ])("%d µs is %s", (us, words) => {
    expect(formatLatency(us)).toBe(words);
  });

  it("never rounds up into a fourth digit", () => {
    expect(formatLatency(9.999)).toBe("10.0\u00a0µs");
    expect(formatLatency(99.97)).toBe("100\u00a0µs");
  });

  it("has a dash for what is not known", () => {
    expect([null, undefined, Number.NaN, Number.POSITIVE_INFINITY].map(formatLatency)).toEqual([
      "–",
      "–",
      "–",
      "–",
    ]);
  });
});

it("ticks carry no idle decimals", () => {
  expect([1_000, 1_500, 500, 20, 0.5].map(formatLatencyTick)).toEqual([
    "1\u00a0ms",
    "1.5\u00a0ms",
    "500\u00a0µs",
    "20\u00a0µs",
    "500\u00a0ns",
  ]);
});

it("a speedup without an interval has two digits", () => {
  expect([0.98, 2.734, 12.61, 340.2, null].map((each) => formatSpeedup(each))).toEqual([
    "0.98×",
    "2.7×",
    "13×",
    "340×",
    "–",
  ]);
});

it.each([
  [2.73, 2.729, 2.731, "2.73×", "2.73× to 2.73×"],
  [2.73, 2.4, 3.1, "2.7×", "2.4× to 3.1×"],
  [18.03, 15, 22, "18×", "15× to 22×"],
  [1234, 1000, 1400, "1200×", "1000× to 1400×"],
  [3, 0.2, 40, "3×", "0.2× to 40×"],
  [2, 0, null, "2×", "over 0×"],
  [1, 1, 1, "1.00×", "1.00× to 1.00×"],
])("%d between %d and %d has the digits that the interval bears", (value, low, high, said, words) => {
  expect(formatSpeedup(value, { low, high })).toBe(said);
  expect(formatSpeedupInterval({ low, high })).toBe(words);
});

it("small numbers turn to powers of ten where zeros would be counted", () => {
  expect([0, 0.001, 0.00001, 4.6e-6, 0.25].map(formatSmall)).toEqual([
    "0",
    "0.001",
    "1e-5",
    "4.6e-6",
    "0.25",
  ]);
});

it("counts agree with their noun", () => {
  expect([plural(1, "worker"), plural(0, "worker"), plural(12_000, "trial")]).toEqual([
    "1 worker",
    "0 workers",
    "12,000 trials",
  ]);
});

it("shares are percentages, with a decimal only where it tells something", () => {
  expect([0.871, 0.0996, 0.042, 0.003, 0, 1, null].map(formatShare)).toEqual([
    "87%",
    "10%",
    "4.2%",
    "0.3%",
    "0%",
    "100%",
    "–",
  ]);
});

it("large quantities take a prefix", () => {
  expect([4.2e9, 524_288, 12, 999.9e9, null].map((value) => formatScaled(value, "FLOP"))).toEqual([
    "4.20\u00a0GFLOP",
    "524\u00a0kFLOP",
    "12\u00a0FLOP",
    "1.00\u00a0TFLOP",
    "–",
  ]);
});
