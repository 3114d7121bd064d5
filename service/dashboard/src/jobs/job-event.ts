import type { EventSourceMessage } from "eventsource-parser/stream";
import type { JobChanged, RecheckFinished, TaskChanged, TrialFinished } from "../api/types";

/** One event of a job's stream; the event's name determines the type of its data. */
export type JobEvent =
  | { id: string; type: "job"; data: JobChanged }
  | { id: string; type: "task"; data: TaskChanged }
  | { id: string; type: "trial"; data: TrialFinished }
  | { id: string; type: "recheck"; data: RecheckFinished };

const KINDS: readonly string[] = ["job", "task", "trial", "recheck"] satisfies JobEvent["type"][];

/** Null for an event that only a newer service sends. */
export function parseEvent({ id = "", event, data }: EventSourceMessage): JobEvent | null {
  if (event === undefined || !KINDS.includes(event)) return null;
  return { id, type: event, data: JSON.parse(data) } as JobEvent;
}
