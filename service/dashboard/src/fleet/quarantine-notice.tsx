import { Button, Group } from "@mantine/core";
import type { Worker } from "../api/types";
import { useMay } from "../auth/queries";
import { ErrorNotice } from "../components/error-notice";
import { Notice } from "../components/notice";
import { RelativeTime } from "../components/relative-time";
import { useReadmitWorker } from "./queries";

/** The reason of a worker's quarantine, with a button that ends it. */
export function QuarantineNotice({ worker }: { worker: Worker }) {
  const mayReadmit = useMay("readmit");
  const { mutate, isPending, error } = useReadmitWorker(worker.id);
  if (worker.quarantine === null) return null;
  return (
    <Notice tone="warn" title={`${worker.id} is in quarantine`}>
      <Group justify="space-between" align="flex-start" gap="md">
        <span style={{ flex: "1 1 16rem" }}>
          {worker.quarantine.reason} The quarantine began <RelativeTime time={worker.quarantine.since} />. The
          worker gets no measurements until it recovers or an admin readmits it.
        </span>
        {mayReadmit && (
          <Button size="xs" variant="default" loading={isPending} onClick={() => mutate()}>
            Readmit
          </Button>
        )}
      </Group>
      {error && <ErrorNotice error={error} />}
    </Notice>
  );
}
