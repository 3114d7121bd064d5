import { Skeleton, Stack } from "@mantine/core";

/** Holds the place of what is being loaded. */
export function Waiting() {
  return (
    <Stack role="status" aria-label="Loading" gap="sm">
      <Skeleton height={32} width="40%" />
      <Skeleton height={160} />
    </Stack>
  );
}
