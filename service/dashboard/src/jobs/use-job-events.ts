import { queryOptions, useQueryClient } from "@tanstack/react-query";
import type { EventSourceMessage } from "eventsource-parser/stream";
import { useEffect, useState } from "react";
import { announceUnauthorized, authorization } from "../api/client";
import { problemToError } from "../api/errors";
import { type Connection, followEvents, readMessages } from "../api/events";
import type { Trial } from "../api/types";
import type { JobEvent } from "./event-words";

const FLUSH_MS = 500;

interface JobEvents {
  connection: Connection;
  /** The trials that the stream told of, newest word of each, by id. */
  trials: ReadonlyMap<string, Trial>;
  /** All that the stream told, in order. */
  events: readonly JobEvent[];
}

/**
 * Follows a job while `enabled`. A burst of events makes one refresh: the stream says that the job changed, and the
 * job is read again; trials are taken from the stream itself, for there may be many.
 */
export function useJobEvents(id: string, enabled: boolean): JobEvents {
  const queries = useQueryClient();
  const [connection, setConnection] = useState<Connection>("connecting");
  const [trials, setTrials] = useState<ReadonlyMap<string, Trial>>(new Map());
  const [events, setEvents] = useState<readonly JobEvent[]>([]);

  useEffect(() => {
    if (!enabled) return;
    const abort = new AbortController();
    const pending = new Map<string, Trial>();
    let heard: JobEvent[] = [];
    setEvents([]);
    let timer: ReturnType<typeof setTimeout> | undefined;

    function flush() {
      timer = undefined;
      const fresh = [...pending];
      const news = heard;
      pending.clear();
      heard = [];
      setEvents((known) => [...known, ...news]);
      if (fresh.length > 0) setTrials((known) => new Map([...known, ...fresh]));
      queries.invalidateQueries({ queryKey: ["job", id], exact: true });
    }

    function onConnection(next: Connection) {
      setConnection(next);
      // What happened before the stream opened, or while it was broken, is not on it.
      if (next === "open") queries.invalidateQueries({ queryKey: ["job", id] });
    }

    async function follow() {
      const messages = followEvents({
        connect: (lastEventId, signal) => openStream(id, lastEventId, signal),
        onConnection,
        signal: abort.signal,
      });
      for await (const message of messages) {
        const event = parseEvent(message);
        heard.push(event);
        if (event.type === "trial") {
          const trial = event.data as unknown as Trial;
          pending.set(trial.id, trial);
        }
        timer ??= setTimeout(flush, FLUSH_MS);
      }
    }

    // A final refusal (the job is gone, the token is not valid any more) also answers the job's own query, which says so.
    follow().catch(() => setConnection("lost"));
    return () => {
      abort.abort();
      clearTimeout(timer);
      // Final numbers come from the list, not from where the stream happened to be cut.
      queries.invalidateQueries({ queryKey: ["job", id, "trials"] });
    };
  }, [id, enabled, queries]);

  return { connection, trials, events };
}

/** All events of a job that has ended: its stream is whole, and closes by itself. */
export function jobEventsQuery(id: string) {
  return queryOptions({
    queryKey: ["job", id, "events"],
    queryFn: async ({ signal }) => {
      const events: JobEvent[] = [];
      for await (const message of readMessages(await openStream(id, null, signal)))
        events.push(parseEvent(message));
      return events;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

function parseEvent({ id = "", event = "", data }: EventSourceMessage): JobEvent {
  return { id, type: event, data: JSON.parse(data) as Record<string, unknown> };
}

async function openStream(
  id: string,
  lastEventId: string | null,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const response = await fetch(`/api/v1/jobs/${encodeURIComponent(id)}/events`, {
    headers: {
      ...authorization(),
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
