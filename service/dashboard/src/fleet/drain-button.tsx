import { Button } from "@mantine/core";
import type { Worker } from "../api/types";
import { useMay } from "../auth/queries";
import { ErrorNotice } from "../components/error-notice";
import { useDrainWorker } from "./queries";

/** Drains or undrains a worker; for admins. */
export function DrainButton({ worker }: { worker: Worker }) {
  const mayDrain = useMay("administer");
  const isDrained = Boolean(worker.drain?.since);
  const { mutate, isPending, error } = useDrainWorker(worker.id, !isDrained);
  if (!mayDrain) return null;
  return (
    <>
      <Button
        size="compact-xs"
        variant="default"
        loading={isPending}
        onClick={() => mutate()}
        aria-label={`${isDrained ? "Undrain" : "Drain"} ${worker.id}`}
      >
        {isDrained ? "Undrain" : "Drain"}
      </Button>
      {error && <ErrorNotice error={error} />}
    </>
  );
}
