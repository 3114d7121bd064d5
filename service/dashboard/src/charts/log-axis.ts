// From coarse to fine; the first that gives enough ticks is used.
const TICK_STEPS = [
  [1, 2, 5],
  [1, 1.5, 2, 3, 5, 7],
  [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9],
];
const ENOUGH_TICKS = 3;

/** Limits and round ticks of a log axis that shows all of `values` (positive, not empty). */
export function logAxis(values: readonly number[]): { min: number; max: number; ticks: number[] } {
  const min = Math.min(...values) / 1.15;
  const max = Math.max(...values) * 1.15;
  let ticks: number[] = [];
  for (const steps of TICK_STEPS) {
    ticks = [];
    for (let power = Math.floor(Math.log10(min)); 10 ** power <= max; power++) {
      ticks.push(...steps.map((step) => Number((step * 10 ** power).toPrecision(2))));
    }
    ticks = ticks.filter((tick) => tick >= min && tick <= max);
    if (ticks.length >= ENOUGH_TICKS) break;
  }
  return { min, max, ticks };
}
