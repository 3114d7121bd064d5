/** Statistics of raw samples, in microseconds. */
export interface SampleSummary {
  count: number;
  median: number;
  min: number;
  max: number;
  /** Half the samples lie between these two. */
  quartiles: [lower: number, upper: number];
}

/** Summarises samples given in seconds; null without samples. */
export function summariseSamples(seconds: readonly number[]): SampleSummary | null {
  if (seconds.length === 0) return null;
  const sorted = seconds.map((value) => value * 1e6).sort((a, b) => a - b);
  return {
    count: sorted.length,
    median: quantile(sorted, 0.5),
    min: quantile(sorted, 0),
    max: quantile(sorted, 1),
    quartiles: [quantile(sorted, 0.25), quantile(sorted, 0.75)],
  };
}

/** Linear interpolation between neighbours of a non-empty ascending list. */
function quantile(sorted: readonly number[], fraction: number): number {
  const position = (sorted.length - 1) * fraction;
  const lower = sorted[Math.floor(position)] as number;
  const upper = sorted[Math.ceil(position)] as number;
  return lower + (upper - lower) * (position - Math.floor(position));
}
