import type { Roofline } from "../api/types";

/** A limit as points of (intensity, operations a second). */
export interface RoofLine {
  /** `arithmetic`, or the name of a memory. */
  name: string;
  points: [intensity: number, flops: number][];
  /** Whether it is what limits the workload. */
  limits: boolean;
}

export interface Roof {
  /** Limits of the axis, in floating point operations a byte. */
  from: number;
  to: number;
  /** The memories from the slowest to the fastest, and the arithmetic. */
  lines: RoofLine[];
}

/** Factor that the plot shows on either side of what is to be seen. */
const MARGIN = 8;
const ARITHMETIC = "arithmetic";
/** Lines whose ends are closer, as a factor of the intensity, have one label. */
const CLOSE = 3;

/** What the device can reach at each arithmetic intensity; null where its peaks are not known for this data type. */
export function roofOf({
  peaks,
  intensity,
  limit,
}: Pick<Roofline, "peaks" | "intensity" | "limit">): Roof | null {
  if (peaks === null || intensity === null || intensity <= 0 || limit == null) return null;
  const memories = [{ name: "DRAM", bytes_per_s: peaks.bytes_per_s }, ...[...(peaks.caches ?? [])].reverse()];
  const ridges = memories.map(({ bytes_per_s }) => peaks.flops / bytes_per_s);
  const from = Math.min(...ridges, intensity) / MARGIN;
  const to = Math.max(...ridges, intensity) * MARGIN;
  const rising = memories.map(
    ({ name, bytes_per_s }): RoofLine => ({
      name,
      points: [
        [from, from * bytes_per_s],
        [peaks.flops / bytes_per_s, peaks.flops],
      ],
      limits: name === limit,
    }),
  );
  const flat: RoofLine = {
    name: ARITHMETIC,
    points: [
      [Math.min(...ridges), peaks.flops],
      [to, peaks.flops],
    ],
    limits: limit === ARITHMETIC,
  };
  return { from, to, lines: [...rising, flat] };
}

/** What is written at the end of each line: of memories that end close to each other, all names at the last end. */
export function labelsOf(lines: readonly RoofLine[]): string[] {
  const labels = lines.map(({ name }) => name);
  // The memories come from the slowest, which ends last, to the fastest.
  for (let index = lines.length - 2; index > 0; index--) {
    const [end, next] = [lines[index], lines[index - 1]].map((line) => line?.points[1]?.[0] ?? 0);
    if (next && end && next / end < CLOSE) {
      labels[index - 1] = `${labels[index]}, ${labels[index - 1]}`;
      labels[index] = "";
    }
  }
  return labels;
}

/** The rate of each limit in words, that of the workload marked. */
export function roofInWords({ lines }: Roof, rate: (name: string, slope: number) => string): string {
  return lines
    .map(({ name, points, limits }) => {
      const [[x, y] = [1, 0]] = points;
      return `${rate(name, name === ARITHMETIC ? y : y / x)}${limits ? " (the limit)" : ""}`;
    })
    .join(", ");
}

/** How much of its limit the best reaches; null where it is not known. */
export function reachedOf({ points, roof_us }: Pick<Roofline, "points" | "roof_us">): number | null {
  const best = points.find(({ name }) => name === "best");
  return best === undefined || roof_us == null ? null : Math.min(1, roof_us / best.us);
}
