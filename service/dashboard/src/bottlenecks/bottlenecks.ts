import type { Bottleneck, Bottlenecks } from "../api/types";
import { functionName } from "../format/function-name";
import { formatLatency, formatShare, formatSpeedup, plural } from "../format/units";
import { type DecisionEffect, effectsOf, effectWords } from "../records/ablation";

/** A ratio that is smaller is shown as 1.00×. */
const ALIKE = 1.005;

/** The function that takes most of the model's time. */
export function longestOf({ functions }: Bottlenecks): Bottleneck | undefined {
  return functions.reduce<Bottleneck | undefined>(
    (longest, each) => (longest === undefined || each.us > longest.us ? each : longest),
    undefined,
  );
}

/** How much of its limit a function reaches; null where the limit is not known. */
export function reachedOf({ roof_us, us }: Bottleneck): number | null {
  return roof_us === null || us === 0 ? null : Math.min(1, roof_us / us);
}

/** How many times as fast as the best schedule a library is; null without one. */
export function libraryGainOf({ library, us, calls }: Bottleneck): number | null {
  return library === null ? null : us / (calls * library.us);
}

/** What the function takes, what limits it, how near it is to that, and how fast a library is. */
export function functionInWords(longest: Bottleneck): string {
  const share = longest.model_share === null ? "" : `, ${formatShare(longest.model_share)} of the time`;
  const words = [`It takes ${formatLatency(longest.us)}${share}.`];
  const reached = reachedOf(longest);
  words.push(
    longest.limit === null || reached === null
      ? "What limits it is not known: the device's peaks were not measured, or not for its data type."
      : `${sentence(longest.limit)} limits it, and it reaches ${formatShare(reached)} of that limit.`,
  );
  const gain = libraryGainOf(longest);
  if (gain !== null) words.push(libraryInWords(longest.library?.name ?? "", gain));
  return words.join(" ");
}

function libraryInWords(name: string, gain: number): string {
  if (Math.max(gain, 1 / gain) < ALIKE) return `${name} is as fast.`;
  return gain > 1
    ? `${name} is ${formatSpeedup(gain)} faster.`
    : `${name} is ${formatSpeedup(1 / gain)} slower.`;
}

/** The time above what the machine allows, and where most of it is; null where no limit is known. */
export function leftInWords({ functions, untimed, us, left_us, unknown_us }: Bottlenecks): string | null {
  if (us === null || left_us === null) return null;
  const [most] = functions.filter((each) => each.left_us !== null);
  const where =
    most?.left_us && left_us > 0 && functions.length > 1
      ? `; ${formatShare(most.left_us / left_us)} of it in ${functionName(most, functions)}`
      : "";
  const unknown = unknown_us ? ` For ${formatLatency(unknown_us)} more, the limit is not known.` : "";
  const others = untimed > 0 ? ` ${plural(untimed, "function")} more without a latency.` : "";
  return `${formatLatency(left_us)} of ${formatLatency(us)} are above what the device's peaks allow${where}.${unknown}${others}`;
}

/** A decision, and what is known of its worth: by a race, or by a model of the trials. */
export interface DecisionWords {
  decision: string;
  worth: string;
  isMeasured: boolean;
}

const UNDECIDED: Record<NonNullable<Bottleneck["undecided"]>, string> = {
  unscheduled: "None: the best is the program without a schedule.",
  "no decisions": "None: the schedule makes no decisions.",
  unmeasured: "Not known yet: there are too few trials for an estimate.",
};

/** Why no decision is named. */
export function undecidedInWords({ undecided }: Bottleneck): string {
  return undecided === null ? "Not known yet." : UNDECIDED[undecided];
}

/** The decision that mattered most; null where it is not known. */
export function decisionInWords(decision: Bottleneck["decision"]): DecisionWords | null {
  if (decision === null) return null;
  if ("changes" in decision) {
    const [effect] = effectsOf([decision]);
    return effect === undefined ? null : measuredInWords(effect);
  }
  const { name, value, importance, trials } = decision;
  return {
    decision: `${name} = ${value}`,
    worth: `explains ${formatShare(importance)} of the differences between ${plural(trials, "trial")}, by a model of their latencies.`,
    isMeasured: false,
  };
}

/** The same of the effects of an ablation, of which the first brings most. */
export function measuredInWords(effect: DecisionEffect): DecisionWords {
  return {
    decision: `${effect.decision} = ${effect.own}`,
    worth: `instead of ${effect.other} brings ${effectWords(effect)}, in a race.`,
    isMeasured: true,
  };
}

function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
