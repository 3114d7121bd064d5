import { Skeleton, Stack } from "@mantine/core";

/** Placeholder of content that is loading. */
export function Waiting() {
  return (
    <Stack role="status" aria-label="Loading" gap="sm">
      <Skeleton height={32} width="40%" />
      <Skeleton height={160} />
    </Stack>
  );
}
