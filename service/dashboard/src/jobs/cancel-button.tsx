import { Button, Group, Popover, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { ErrorNotice } from "../components/error-notice";
import { useCancelJob } from "./queries";

/** Cancels a job, once it is said again that it is meant. */
export function CancelButton({ id }: { id: string }) {
  const [asking, setAsking] = useState(false);
  const cancel = useCancelJob(id);
  return (
    <Popover
      opened={asking}
      onChange={setAsking}
      position="bottom-end"
      shadow="md"
      trapFocus
      returnFocus
      width={300}
    >
      <Popover.Target>
        <Button variant="default" onClick={() => setAsking(true)}>
          Cancel job
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Cancel the job?">
        <Stack gap="sm">
          <Text size="sm">
            What has been measured so far is kept. The search ends and cannot be taken up again.
          </Text>
          {cancel.error && <ErrorNotice error={cancel.error} />}
          <Group gap="xs" justify="flex-end">
            <Button size="xs" variant="default" onClick={() => setAsking(false)}>
              Keep running
            </Button>
            <Button
              size="xs"
              color="#b34700"
              loading={cancel.isPending}
              onClick={() => cancel.mutate(undefined, { onSuccess: () => setAsking(false) })}
            >
              Cancel job
            </Button>
          </Group>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
