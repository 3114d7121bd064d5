import { Button, Group } from "@mantine/core";
import { titleOf } from "../api/errors";
import { Notice } from "./notice";

/** Why something could not be shown, in the service's own words, and a way to ask again. */
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
