import { Group } from "@mantine/core";
import type { Drain, Worker } from "../api/types";
import { Tag } from "../components/tag";

function drainInWords(drain: Drain): string {
  const why = drain.leaving ? "Its host is shutting down." : "An admin drained it.";
  return drain.state === "draining"
    ? `${why} It finishes its current work and gets no new work.`
    : `${why} It gets no new work.`;
}

/** A worker's present work, and whether it may measure. */
export function WorkerState({ worker }: { worker: Worker }) {
  return (
    <Group gap="xs">
      {worker.quarantine && (
        <Tag tone="warn" hint={worker.quarantine.reason}>
          quarantine
        </Tag>
      )}
      {worker.drain && (
        <Tag tone="warn" hint={drainInWords(worker.drain)}>
          {worker.drain.state}
        </Tag>
      )}
      {worker.alive ? (
        <Tag tone={worker.slot ? "active" : "neutral"}>{worker.slot ? "measuring" : "idle"}</Tag>
      ) : (
        <Tag tone="bad">gone</Tag>
      )}
    </Group>
  );
}
