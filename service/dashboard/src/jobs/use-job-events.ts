import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { announceUnauthorized, authorization } from "../api/client";
import { problemToError } from "../api/errors";
import { type Connection, followEvents } from "../api/events";
import type { Trial } from "../api/types";

const FLUSH_MS = 500;

interface JobEvents {
  connection: Connection;
  /** The trials that the stream told of, newest word of each, by id. */
  trials: ReadonlyMap<string, Trial>;
}

/**
 * Follows a job while `enabled`. A burst of events makes one refresh: the stream says that the job changed, and the
 * job is read again; trials are taken from the stream itself, for there may be many.
 */
export function useJobEvents(id: string, enabled: boolean): JobEvents {
  const queries = useQueryClient();
  const [connection, setConnection] = useState<Connection>("connecting");
  const [trials, setTrials] = useState<ReadonlyMap<string, Trial>>(new Map());

  useEffect(() => {
    if (!enabled) return;
    const abort = new AbortController();
    const pending = new Map<string, Trial>();
    let timer: ReturnType<typeof setTimeout> | undefined;

    function flush() {
      timer = undefined;
      const fresh = [...pending];
      pending.clear();
      if (fresh.length > 0) setTrials((known) => new Map([...known, ...fresh]));
      queries.invalidateQueries({ queryKey: ["job", id], exact: true });
    }

    function onConnection(next: Connection) {
      setConnection(next);
      // What happened before the stream opened, or while it was broken, is not on it.
      if (next === "open") queries.invalidateQueries({ queryKey: ["job", id] });
    }

    async function follow() {
      const events = followEvents({
        connect: (lastEventId, signal) => openStream(id, lastEventId, signal),
        onConnection,
        signal: abort.signal,
      });
      for await (const { event, data } of events) {
        if (event === "trial") {
          const trial = JSON.parse(data) as Trial;
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

  return { connection, trials };
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
