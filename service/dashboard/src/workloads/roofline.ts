import type { Roofline } from "../api/types";

export interface Roof {
  /** Limits of the axis, in floating point operations a byte. */
  from: number;
  to: number;
  /** Where memory stops being the limit. */
  ridge: number;
  /** The roof as points of (intensity, operations a second). */
  line: [intensity: number, flops: number][];
}

/** Decades that the plot shows on either side of what is to be seen. */
const MARGIN = 8;

/** What the device can reach at each arithmetic intensity; null where its peaks are not known. */
export function roofOf({ peaks, intensity }: Pick<Roofline, "peaks" | "intensity">): Roof | null {
  if (peaks === null || intensity === null || intensity <= 0) return null;
  const ridge = peaks.flops / peaks.bytes_per_s;
  const from = Math.min(ridge, intensity) / MARGIN;
  const to = Math.max(ridge, intensity) * MARGIN;
  return {
    from,
    to,
    ridge,
    line: [
      [from, from * peaks.bytes_per_s],
      [ridge, peaks.flops],
      [to, peaks.flops],
    ],
  };
}

/** What bounds the workload at its intensity: the most that it can reach. */
export function ceilingOf({ peaks, intensity }: Pick<Roofline, "peaks" | "intensity">): number | null {
  if (peaks === null || intensity === null) return null;
  return Math.min(peaks.flops, intensity * peaks.bytes_per_s);
}

export function boundInWords(roofline: Pick<Roofline, "peaks" | "intensity">): string | null {
  const { peaks, intensity } = roofline;
  if (peaks === null || intensity === null) return null;
  return intensity * peaks.bytes_per_s < peaks.flops ? "memory-bound" : "compute-bound";
}
