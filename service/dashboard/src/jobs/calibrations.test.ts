import { expect, test } from "vitest";
import type { PredictionRound } from "../api/types";
import { calibrations } from "./calibrations";

function round(model: PredictionRound["model"], pairs: number, rank_correlation: number | null) {
  return { model, pairs: Array(pairs).fill({}), rank_correlation } as unknown as PredictionRound;
}

test("each model has its own points, at the trials of all models", () => {
  const rounds = [
    round("ranking", 8, 0.5),
    round("ranking", 2, null),
    round("gaussian_process", 6, 0.9),
    round("ranking", 4, -0.25),
  ];
  expect(calibrations(rounds)).toEqual([
    {
      model: "ranking",
      trials: 14,
      points: [
        [8, 0.5],
        [20, -0.25],
      ],
      mean: 0.25,
    },
    { model: "gaussian_process", trials: 6, points: [[16, 0.9]], mean: 0.9 },
  ]);
});

test("rounds of an earlier release have a model of their own, and small ones no mean", () => {
  expect(calibrations([round(null, 2, null)])).toEqual([
    { model: "unknown", trials: 2, points: [], mean: null },
  ]);
  expect(calibrations([])).toEqual([]);
});
