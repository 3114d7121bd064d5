import type { Job, StoredComparison } from "../api/types";

/** A latency of one run of a model, with its name. */
export interface Figure {
  name: string;
  us: number;
  what: string;
}

type Model = NonNullable<Job["model"]>;

/** What one run takes without schedules: measured beside the tuned model, or else the sum of its functions. */
export function untunedOf({ baseline_us, baseline_measured_us }: Model): number {
  return baseline_measured_us ?? baseline_us;
}

/** The known latencies of one run, the headline's first. */
export function modelFigures(model: Model, comparison?: StoredComparison | null): Figure[] {
  const own = comparison?.engines.find(({ name }) => name === "loopwright");
  const figures: [string, number | null | undefined, string][] = [
    [
      "Measured as one program",
      model.measured_us,
      "on the fleet, with random weights: what the speedup is computed from",
    ],
    [
      "Untuned, measured as one program",
      model.baseline_measured_us,
      "the same without schedules, in turns with the tuned model",
    ],
    [
      "Sum of the certified bests",
      model.best_us,
      "each function's median in its closing race, times its calls",
    ],
    [
      "Sum of the fastest trials",
      model.searched_us,
      "before the closing races: the fastest of many trials is faster than the same program in a race",
    ],
    ["In a user's process", own?.us, "as the comparison with other engines measured it"],
    [
      "Sum of the functions without a schedule",
      model.baseline_us,
      "each function as TVM compiles it, times its calls",
    ],
  ];
  return figures.flatMap(([name, us, what]) => (us == null ? [] : [{ name, us, what }]));
}
