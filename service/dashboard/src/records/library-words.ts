import type { Certificate } from "../api/types";
import { formatLatency, formatSpeedup } from "../format/units";

/** Compares a schedule with a vendor's library. */
export function libraryWords({ name, us }: NonNullable<Certificate["library"]>, bestUs: number): string {
  const took = `${name}, which computes the same operation, took ${formatLatency(us)} in the same rounds`;
  const [gain, loss] = [us / bestUs, bestUs / us];
  // Shown as 1.00×.
  if (Math.max(gain, loss) < 1.005) return `${took}: as long as this schedule.`;
  return gain > 1
    ? `${took}: this schedule is ${formatSpeedup(gain)} faster.`
    : `${took}: the library is ${formatSpeedup(loss)} faster. Call the library instead if you can.`;
}
