import { Button, Group, Stack, Text } from "@mantine/core";
import { ErrorNotice } from "../components/error-notice";
import { Unfolding } from "../components/unfolding";
import { useCancelJob } from "./queries";

/** Cancels a job, after a confirmation. */
export function CancelButton({ id }: { id: string }) {
  const cancel = useCancelJob(id);
  return (
    <Unfolding
      label="Cancel the job?"
      width={300}
      button={(toggle) => (
        <Button variant="default" onClick={toggle}>
          Cancel job
        </Button>
      )}
    >
      {(close) => (
        <Stack gap="sm">
          <Text size="sm">
            The measurements made so far are kept, but no further schedule is certified. A cancelled job
            cannot be resumed.
          </Text>
          {cancel.error && <ErrorNotice error={cancel.error} />}
          <Group gap="xs" justify="flex-end">
            <Button size="xs" variant="default" onClick={close}>
              Keep running
            </Button>
            <Button
              size="xs"
              color="#b34700"
              loading={cancel.isPending}
              onClick={() => cancel.mutate(undefined, { onSuccess: close })}
            >
              Cancel job
            </Button>
          </Group>
        </Stack>
      )}
    </Unfolding>
  );
}
