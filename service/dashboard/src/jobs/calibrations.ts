import type { PredictionRound } from "../api/types";
import { type Model, meanCorrelation, modelOf } from "../workloads/models";

/** How well a model ordered the programs that it selected. */
export interface Calibrated {
  model: Model;
  /** Measured trials that it selected. */
  trials: number;
  /** Its rank correlation in each round, at the number of trials that all models had selected by then. */
  points: [trials: number, correlation: number][];
  /** Over its rounds, weighted by their trials. */
  mean: number | null;
}

/** The models of a task's rounds, which are in the order of time; those that selected first come first. */
export function calibrations(rounds: readonly PredictionRound[]): Calibrated[] {
  const found = new Map<Model, { rounds: PredictionRound[]; points: Calibrated["points"] }>();
  let trials = 0;
  for (const round of rounds) {
    trials += round.pairs.length;
    const model = modelOf(round);
    const known = found.get(model) ?? { rounds: [], points: [] };
    found.set(model, known);
    known.rounds.push(round);
    if (round.rank_correlation !== null) known.points.push([trials, round.rank_correlation]);
  }
  return [...found].map(([model, { rounds, points }]) => ({
    model,
    trials: rounds.reduce((sum, { pairs }) => sum + pairs.length, 0),
    points,
    mean: meanCorrelation(rounds),
  }));
}
