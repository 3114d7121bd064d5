import { Group } from "@mantine/core";
import type { Worker } from "../api/types";
import { Tag } from "../components/tag";

/** What a worker is doing, and whether it may measure. */
export function WorkerState({ worker }: { worker: Worker }) {
  return (
    <Group gap="xs">
      {worker.quarantine && (
        <Tag tone="warn" hint={worker.quarantine.reason}>
          quarantine
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
