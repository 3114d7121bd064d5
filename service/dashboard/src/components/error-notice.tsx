import { Button, Group } from "@mantine/core";
import { titleOf } from "../api/errors";
import { Notice } from "./notice";

/** Shows the service's error message, with a button to try again. */
export function ErrorNotice({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  return (
    <Notice tone="bad" title={titleOf(error)}>
      <Group justify="space-between" align="flex-start" gap="md">
        <span style={{ flex: "1 1 16rem" }}>{error.message}</span>
        {onRetry && (
          <Button size="xs" variant="default" onClick={onRetry}>
            Try again
          </Button>
        )}
      </Group>
    </Notice>
  );
}
