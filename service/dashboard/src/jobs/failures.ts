import type { Job, Trial } from "../api/types";
import { trialName } from "./summary";

export interface FailureGroup {
  kind: string;
  stage: string;
  message: string;
  /** Names of the trials in the group, by `trialName`. */
  trials: string[];
}

/** Groups failed trials by message, the most frequent first. */
export function failureGroups(job: Pick<Job, "tasks">, trials: readonly Trial[]): FailureGroup[] {
  const groups = new Map<string, FailureGroup>();
  for (const trial of trials) {
    if (trial.state !== "failed") continue;
    const { failure_kind, failure_stage, failure_message } = trial;
    const kind = failure_kind ?? "unknown";
    const stage = failure_stage ?? "unknown";
    const message = failure_message?.trim() || "There is no error message.";
    const key = JSON.stringify([kind, stage, message]);
    const group = groups.get(key) ?? { kind, stage, message, trials: [] };
    group.trials.push(trialName(job, trial));
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.trials.length - a.trials.length);
}

const MOST_NAMES = 12;

/** Names in a line, each task once: `dense #3, #7, conv #8 and 20 more`. */
export function namesInWords(names: readonly string[]): string {
  const taskOf = (name: string) => name.slice(0, name.lastIndexOf("#"));
  const shown = names
    .slice(0, MOST_NAMES)
    .map((name, index, all) => {
      const before = all[index - 1];
      return before !== undefined && taskOf(before) === taskOf(name) ? name.slice(taskOf(name).length) : name;
    })
    .join(", ");
  const rest = names.length - MOST_NAMES;
  return rest > 0 ? `${shown} and ${rest} more` : shown;
}
