import { expect, test } from "vitest";
import type { Job, StoredComparison } from "../api/types";
import { modelFigures, untunedOf } from "./model-figures";

const MODEL = {
  baseline_us: 900,
  best_us: 60,
  searched_us: 50,
  measured_us: 75,
  baseline_measured_us: 800,
} as NonNullable<Job["model"]>;

test("each latency has a name, and the headline's is first", () => {
  const comparison = { engines: [{ name: "torch" }, { name: "loopwright", us: 66 }] } as StoredComparison;
  expect(modelFigures(MODEL, comparison).map(({ us }) => us)).toEqual([75, 800, 60, 50, 66, 900]);
});

test("what was not measured has no figure", () => {
  const model = { ...MODEL, measured_us: null, baseline_measured_us: null, searched_us: null };
  const failed = { engines: [{ name: "loopwright", us: null }] } as StoredComparison;
  expect(modelFigures(model, failed).map(({ us }) => us)).toEqual([60, 900]);
  expect([untunedOf(model), untunedOf(MODEL)]).toEqual([900, 800]);
});
