import { queryOptions, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Connection } from "../api/events";
import type { Trial } from "../api/types";
import type { JobEvent } from "./job-event";
import { followJob, readJob } from "./job-stream";

interface JobEvents {
  connection: Connection;
  /** Trials of the stream, with their latest state, by id. */
  trials: ReadonlyMap<string, Trial>;
  /** All events of the stream, in order. */
  events: readonly JobEvent[];
}

/**
 * Follows a job while `enabled`. After a batch of events the job is read again; trials are taken from the stream
 * itself, for there may be many.
 */
export function useJobEvents(id: string, enabled: boolean): JobEvents {
  const queries = useQueryClient();
  const [connection, setConnection] = useState<Connection>("connecting");
  const [trials, setTrials] = useState<ReadonlyMap<string, Trial>>(new Map());
  const [events, setEvents] = useState<readonly JobEvent[]>([]);

  useEffect(() => {
    if (!enabled) return;
    const abort = new AbortController();
    setEvents([]);

    function onConnection(next: Connection) {
      setConnection(next);
      // What happened before the stream opened, or while it was broken, is not on it.
      if (next === "open") queries.invalidateQueries({ queryKey: ["job", id] });
    }

    function onEvents(batch: JobEvent[]) {
      setEvents((known) => [...known, ...batch]);
      setTrials((known) => withTrials(known, batch));
      queries.invalidateQueries({ queryKey: ["job", id], exact: true });
    }

    // A final refusal (the job is gone, the session has ended) also answers the job's own query, which says so.
    followJob(id, { onConnection, onEvents, signal: abort.signal }).catch(() => setConnection("lost"));
    return () => {
      abort.abort();
      // Final numbers come from the list, not from where the stream happened to be cut.
      queries.invalidateQueries({ queryKey: ["job", id, "trials"] });
    };
  }, [id, enabled, queries]);

  return { connection, trials, events };
}

/** The same map if no trial is among the events, so that nothing is drawn anew. */
function withTrials(known: ReadonlyMap<string, Trial>, events: readonly JobEvent[]) {
  const fresh = events.flatMap((event) => (event.type === "trial" ? [event.data] : []));
  return fresh.length === 0
    ? known
    : new Map([...known, ...fresh.map((trial) => [trial.id, trial] as const)]);
}

export function jobEventsQuery(id: string) {
  return queryOptions({
    queryKey: ["job", id, "events"],
    queryFn: ({ signal }) => readJob(id, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
}
