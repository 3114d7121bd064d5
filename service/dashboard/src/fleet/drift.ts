import type { Check } from "../api/types";

/** Smallest share of the first timing that fills the height, so that noise does not look large. */
const LEAST_SPAN = 0.1;

export interface DriftShape {
  /** Points of the line within a box of 100 by 100, left to right. */
  points: [x: number, y: number][];
  /** Height of the first timing. */
  firstY: number;
}

/** Timings of the reference kernel as a line within a box; slower is higher. Null for fewer than two. */
export function driftShape(checks: readonly Check[]): DriftShape | null {
  const first = checks[0];
  if (first === undefined || checks.length < 2) return null;
  const values = checks.map(({ us }) => us);
  const middle = (Math.max(...values) + Math.min(...values)) / 2;
  const span = Math.max(Math.max(...values) - Math.min(...values), first.us * LEAST_SPAN);
  const y = (us: number) => 50 - (90 * (us - middle)) / span;
  const times = checks.map(({ at }) => Date.parse(at));
  const [began, ended] = [Math.min(...times), Math.max(...times)];
  const x = (time: number) => (100 * (time - began)) / Math.max(ended - began, 1);
  return { points: checks.map(({ at, us }) => [x(Date.parse(at)), y(us)]), firstY: y(first.us) };
}

/** How far from the first timing: `+3.2%`, `−1%`. */
export function driftInWords(ratio: number): string {
  const percent = (ratio - 1) * 100;
  const size = Math.abs(percent);
  const digits = size >= 9.95 ? size.toFixed(0) : size.toFixed(1);
  if (Number(digits) === 0) return "0%";
  return `${percent < 0 ? "−" : "+"}${digits}%`;
}
