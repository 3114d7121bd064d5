import type { PredictionRound } from "../api/types";

export type Model = NonNullable<PredictionRound["model"]> | "unknown";

/** The models whose scores select programs, as people call them. */
export const MODEL_NAMES: Record<Model, string> = {
  ranking: "XGBoost ranking",
  gaussian_process: "Gaussian process",
  unknown: "A model of an earlier release",
};

export function modelOf({ model }: Pick<PredictionRound, "model">): Model {
  return model ?? "unknown";
}

/** The mean rank correlation of rounds, weighted by their pairs; null if each round has too few. */
export function meanCorrelation(rounds: readonly PredictionRound[]): number | null {
  let sum = 0;
  let weight = 0;
  for (const { rank_correlation, pairs } of rounds) {
    if (rank_correlation === null) continue;
    sum += rank_correlation * pairs.length;
    weight += pairs.length;
  }
  return weight === 0 ? null : sum / weight;
}
