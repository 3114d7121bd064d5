import type { EventSourceMessage } from "eventsource-parser/stream";
import type { JobChanged, TaskChanged, TrialFinished } from "../api/types";

/** One event of a job's stream; the name of the event says what its data is. */
export type JobEvent =
  | { id: string; type: "job"; data: JobChanged }
  | { id: string; type: "task"; data: TaskChanged }
  | { id: string; type: "trial"; data: TrialFinished };

/** Null for an event of a kind that only a newer service sends. */
export function parseEvent({ id = "", event, data }: EventSourceMessage): JobEvent | null {
  if (event !== "job" && event !== "task" && event !== "trial") return null;
  return { id, type: event, data: JSON.parse(data) } as JobEvent;
}
