import type { Certificate } from "../api/types";
import type { Ends } from "../format/units";

/** What a comparison of two records needs of each. */
export interface Contender {
  candidate: string;
  is_baseline: boolean;
  workload_hash: string;
  device_class: string;
  median_us: number;
  certificate?: Certificate | null;
}

/** When the samples of a trial were taken: before the closing race, which times the fastest trials again. */
export const FIRST_MEASURED = "when first measured";

/** How many times as fast the first is as the second, and from where. */
export interface RelativeSpeed {
  value: number;
  interval: Ends | null;
  /** Latencies that belong to the ratio, in microseconds; null where only the ratio is known. */
  us: [first: number | null, second: number | null];
  raced: boolean;
}

/**
 * The speed of one record relative to another: from a closing race in which both took part, or else from the samples
 * that each had when it was tried alone.
 */
export function relativeSpeed(one: Contender, other: Contender): RelativeSpeed {
  const forward = raced(one, other);
  if (forward !== null) return forward;
  const backward = raced(other, one);
  if (backward !== null) return inverse(backward);
  return {
    value: other.median_us / one.median_us,
    interval: null,
    us: [one.median_us, other.median_us],
    raced: false,
  };
}

/** The race that certified the first of two programs, if the second ran in it to the end. */
function raced({ certificate, ...one }: Contender, other: Contender): RelativeSpeed | null {
  const together = one.workload_hash === other.workload_hash && one.device_class === other.device_class;
  if (!certificate || !together || one.candidate === other.candidate) return null;
  if (other.is_baseline) {
    return {
      value: certificate.speedup,
      interval: certificate.interval ?? null,
      us: [certificate.best_us, certificate.baseline_us],
      raced: true,
    };
  }
  const second = certificate.runner_up;
  if (!second || second.candidate !== other.candidate) return null;
  const { value, low, high } = second.slowdown;
  return {
    value,
    interval: { low, high },
    us: [certificate.best_us, certificate.best_us * value],
    raced: true,
  };
}

function inverse({ value, interval, us: [first, second], raced }: RelativeSpeed): RelativeSpeed {
  return {
    value: 1 / value,
    interval:
      interval === null
        ? null
        : {
            low: interval.high === null ? 0 : 1 / interval.high,
            high: interval.low > 0 ? 1 / interval.low : null,
          },
    us: [second, first],
    raced,
  };
}
