import { announceUnauthorized } from "../api/client";
import { problemToError } from "../api/errors";
import { type Connection, followEvents, readMessages } from "../api/events";
import { type JobEvent, parseEvent } from "./job-event";

const FLUSH_MS = 500;

export interface FollowJobOptions {
  onConnection(connection: Connection): void;
  /** Called at most twice a second: a burst of events makes one refresh. */
  onEvents(events: JobEvent[]): void;
  signal: AbortSignal;
}

/** Follows a job until `signal` aborts. Throws `ApiError` on a final refusal. */
export async function followJob(id: string, { onConnection, onEvents, signal }: FollowJobOptions) {
  let pending: JobEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    timer = undefined;
    const events = pending;
    pending = [];
    onEvents(events);
  };
  const messages = followEvents({
    connect: (lastEventId) => openStream(id, lastEventId, signal),
    onConnection,
    signal,
  });
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  for await (const message of messages) {
    const event = parseEvent(message);
    if (event === null) continue;
    pending.push(event);
    timer ??= setTimeout(flush, FLUSH_MS);
  }
}

/** All events of a job that has ended: its stream is whole, and closes by itself. */
export async function readJob(id: string, signal: AbortSignal): Promise<JobEvent[]> {
  const events: JobEvent[] = [];
  for await (const message of readMessages(await openStream(id, null, signal))) {
    const event = parseEvent(message);
    if (event !== null) events.push(event);
  }
  return events;
}

async function openStream(
  id: string,
  lastEventId: string | null,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const response = await fetch(`/api/v1/jobs/${encodeURIComponent(id)}/events`, {
    headers: {
      Accept: "text/event-stream",
      ...(lastEventId === null ? {} : { "Last-Event-ID": lastEventId }),
    },
    signal,
  });
  if (response.status === 401) announceUnauthorized();
  if (!response.ok || response.body === null) {
    throw problemToError(response.status, await response.json().catch(() => null));
  }
  return response.body;
}
