import { Button, Group } from "@mantine/core";
import type { Worker } from "../api/types";
import { useMay } from "../auth/queries";
import { ErrorNotice } from "../components/error-notice";
import { Notice } from "../components/notice";
import { RelativeTime } from "../components/relative-time";
import { useReadmitWorker } from "./queries";

/** Why a worker gets no measurements, and the way to let it measure again. */
export function QuarantineNotice({ worker }: { worker: Worker }) {
  const mayReadmit = useMay("readmit");
  const { mutate, isPending, error } = useReadmitWorker(worker.id);
  if (worker.quarantine === null) return null;
  return (
    <Notice tone="warn" title={`${worker.id} is in quarantine`}>
      <Group justify="space-between" align="flex-start" gap="md">
        <span style={{ flex: "1 1 16rem" }}>
          {worker.quarantine.reason} The worker has been in quarantine since{" "}
          <RelativeTime time={worker.quarantine.since} />, and gets no measurements until it recovers or an
          admin readmits it.
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
