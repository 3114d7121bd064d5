const STEPS: [limitSeconds: number, unitSeconds: number, unit: Intl.RelativeTimeFormatUnit][] = [
  [60, 1, "second"],
  [3_600, 60, "minute"],
  [86_400, 3_600, "hour"],
  [30 * 86_400, 86_400, "day"],
  [365 * 86_400, 30 * 86_400, "month"],
  [Number.POSITIVE_INFINITY, 365 * 86_400, "year"],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "always" });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** How long ago `time` was, as seen at `now`. A clock slightly ahead of ours is not shown as the future. */
export function formatRelative(time: Date, now: Date): string {
  const seconds = Math.max(0, (now.getTime() - time.getTime()) / 1_000);
  if (seconds < 5) return "just now";
  for (const [limit, size, unit] of STEPS) {
    if (seconds < limit) return relative.format(-Math.floor(seconds / size), unit);
  }
  return formatAbsolute(time);
}

export function formatAbsolute(time: Date): string {
  return absolute.format(time);
}

/** A stretch of time: 8 s, 3 min 20 s, 2 h 5 min. */
export function formatElapsed(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1_000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return join(minutes, "min", seconds % 60, "s");
  return join(Math.floor(minutes / 60), "h", minutes % 60, "min");
}

function join(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** A short stretch of time: 0 s, 350 ms, 1.25 s; longer ones as `formatElapsed` has them. */
export function formatMilliseconds(milliseconds: number): string {
  if (milliseconds === 0) return "0\u00a0s";
  if (Math.abs(milliseconds) < 1_000) return `${Math.round(milliseconds)}\u00a0ms`;
  if (Math.abs(milliseconds) < 60_000) return `${Number((milliseconds / 1_000).toFixed(2))}\u00a0s`;
  return formatElapsed(milliseconds);
}

/** Formats an estimated duration, rounded according to its size: 20 s, 4 min, 2 h 50 min. */
export function formatGuess(seconds: number): string {
  const step = seconds < 60 ? 5 : seconds < 3_600 ? 60 : 600;
  return formatElapsed(1_000 * step * Math.max(1, Math.round(seconds / step)));
}
