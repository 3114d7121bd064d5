import { expect, it } from "vitest";
import type { Bottleneck, Bottlenecks } from "../api/types";
import {
  decisionInWords,
  functionInWords,
  leftInWords,
  longestOf,
  reachedOf,
  undecidedInWords,
} from "./bottlenecks";

function bottleneck(name: string, changes: Partial<Bottleneck> = {}): Bottleneck {
  return {
    workload_hash: name,
    name,
    source: null,
    record_id: "r",
    calls: 2,
    us: 400,
    model_share: 0.4,
    limit: "L2",
    roof_us: 100,
    left_us: 300,
    library: null,
    decision: null,
    undecided: null,
    ...changes,
  };
}

const words = (text: string | null) => text?.replaceAll("\u00a0", " ");

it("the longest function is not the one with most time left", () => {
  const functions = [bottleneck("a"), bottleneck("b", { us: 500, left_us: 10 })];
  expect(longestOf({ functions, us: 900, left_us: 310, unknown_us: 0, untimed: 0 })?.name).toBe("b");
  expect(longestOf({ functions: [], us: 0, left_us: null, unknown_us: 0, untimed: 0 })).toBeUndefined();
});

it("a function is told with its limit and its library", () => {
  expect(words(functionInWords(bottleneck("a")))).toBe(
    "It takes 400 µs, 40% of the time. L2 limits it, and it reaches 25% of that limit.",
  );
  const library = (us: number) => ({ name: "oneDNN 3.6", us, run_secs: [] });
  const fast = functionInWords(bottleneck("a", { limit: "arithmetic", library: library(100) }));
  expect(words(fast)).toContain("Arithmetic limits it");
  expect(words(fast)).toContain("oneDNN 3.6 is 2.0× faster.");
  expect(words(functionInWords(bottleneck("a", { library: library(600) })))).toContain("is 3.0× slower.");
  expect(words(functionInWords(bottleneck("a", { library: library(200.5) })))).toContain("is as fast.");
  const unknown = functionInWords(bottleneck("a", { limit: null, roof_us: null, model_share: null }));
  expect(words(unknown)).toMatch(/^It takes 400 µs\. What limits it is not known/);
});

it("the time left is of the functions with a limit", () => {
  const functions = [
    bottleneck("unknown", { limit: null, left_us: null }),
    bottleneck("a"),
    bottleneck("b", { left_us: 100 }),
  ];
  const found: Bottlenecks = { functions, us: 1200, left_us: 400, unknown_us: 400, untimed: 0 };
  expect(words(leftInWords(found))).toBe(
    "400 µs of 1.20 ms are above what the device's peaks allow; 75% of it in a. For 400 µs more, the limit is not known.",
  );
  expect(words(leftInWords({ ...found, untimed: 2 }))).toMatch(/2 functions more without a latency\.$/);
  expect(leftInWords({ ...found, left_us: null })).toBeNull();
  expect(reachedOf(bottleneck("a", { roof_us: 410 }))).toBe(1);
});

it("a decision is told with how its worth is known", () => {
  const tile = { name: "C: tile i[0]", before: "8", after: "4" };
  const measured = decisionInWords({ changes: [tile], us: 4, slowdown: { value: 1.8, low: 1.7, high: 1.9 } });
  expect(measured?.decision).toBe("C: tile i[0] = 8");
  expect(measured?.worth).toContain("instead of 4 brings 1.8×");
  expect(measured?.isMeasured).toBe(true);
  const estimated = decisionInWords({ name: "C: place", value: "inlined", importance: 0.62, trials: 24 });
  expect(estimated?.decision).toBe("C: place = inlined");
  expect(estimated?.worth).toContain("62% of the differences between 24 trials");
  expect(estimated?.isMeasured).toBe(false);
  expect(decisionInWords(null)).toBeNull();
  expect(undecidedInWords(bottleneck("a", { undecided: "unscheduled" }))).toContain("without a schedule");
  expect(undecidedInWords(bottleneck("a"))).toBe("Not known yet.");
});
