const NO_VALUE = "–";
/** Keeps a number and its unit on one line. */
const NBSP = "\u00a0";

/** A latency in microseconds as people read it: three digits and the unit that suits. */
export function formatLatency(us: number | null | undefined): string {
  if (us === null || us === undefined || !Number.isFinite(us)) return NO_VALUE;
  if (us === 0) return `0${NBSP}µs`;
  const size = Math.abs(us);
  if (size < 1) return withUnit(us * 1e3, "ns");
  if (size < 999.5) return withUnit(us, "µs");
  if (size < 999.5e3) return withUnit(us / 1e3, "ms");
  return withUnit(us / 1e6, "s");
}

/** A latency on an axis: 1 ms, 1.5 ms, without the decimals that only fill. */
export function formatLatencyTick(us: number): string {
  const [value, unit] = formatLatency(us).split(NBSP);
  return `${Number(value)}${NBSP}${unit}`;
}

/** The ends of an interval; the upper one may be open. */
export interface Ends {
  low: number;
  high: number | null;
}

/**
 * A ratio such as 2.7× or 18×, of two digits, as differences of some percent are noise. With an interval, it has as many
 * as the interval bears, at least one and at most three: 2.73× for 2.72 to 2.74, 3× for 2 to 5.
 */
export function formatSpeedup(speedup: number | null | undefined, interval?: Ends | null): string {
  if (speedup === null || speedup === undefined || !Number.isFinite(speedup)) return NO_VALUE;
  const most = ofThreeDigits(speedup);
  const decimals = interval
    ? Math.min(most, decimalsBorne(speedup, interval, most))
    : ofThreeDigits(10 * speedup);
  if (decimals >= 0) return `${speedup.toFixed(decimals)}×`;
  const unit = 10 ** -decimals;
  return `${Math.round(speedup / unit) * unit}×`;
}

/** An interval of a speedup with the digits that it bears: "2.4× to 3.1×", "over 0×" without an upper end. */
export function formatSpeedupInterval(interval: Ends): string {
  const low = formatSpeedup(interval.low, interval);
  return interval.high === null ? `over ${low}` : `${low} to ${formatSpeedup(interval.high, interval)}`;
}

/** The decimals of a number of three digits. */
function ofThreeDigits(value: number): number {
  return value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
}

/** The decimals of which the last is as large as half of the interval, or those of the first digit. */
function decimalsBorne(value: number, { low, high }: Ends, most: number): number {
  const first = value > 0 ? -Math.floor(Math.log10(value)) : 0;
  if (high === null) return first;
  const half = (high - low) / 2;
  return half > 0 ? Math.max(first, -Math.floor(Math.log10(half))) : most;
}

export function formatCount(count: number): string {
  return count.toLocaleString("en");
}

/** `one` or `many` by the count, with the count: 1 worker, 2 workers. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** A small number such as a tolerance: 0, 0.001, 2.1e-7. */
export function formatSmall(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e4
    ? String(Number(value.toPrecision(3)))
    : value.toExponential(1).replace(".0e", "e");
}

function withUnit(value: number, unit: string): string {
  const size = Math.abs(value);
  return `${value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)}${NBSP}${unit}`;
}

/** A share of one as a percentage: 87%, 4.2%, 0.3%. */
export function formatShare(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return NO_VALUE;
  const percent = share * 100;
  return `${percent.toFixed(percent >= 9.95 || percent === 0 ? 0 : 1)}%`;
}

const SCALES: [limit: number, prefix: string][] = [
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** A quantity with a decimal prefix and three digits: `formatScaled(4.2e9, "FLOP/s")` is 4.20 GFLOP/s. */
export function formatScaled(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NO_VALUE;
  const [limit, prefix] = SCALES.find(([least]) => Math.abs(value) >= least * 0.9995) ?? [1, ""];
  return prefix === "" ? `${Math.round(value)}${NBSP}${unit}` : withUnit(value / limit, `${prefix}${unit}`);
}

/** A ratio with its interval, whose end may be open: "1.031 (1.012 to 1.050)". */
export function formatInterval({
  value,
  low,
  high,
}: {
  value: number;
  low: number;
  high: number | null;
}): string {
  return `${value.toFixed(3)} (${low.toFixed(3)} to ${high === null ? "…" : high.toFixed(3)})`;
}
