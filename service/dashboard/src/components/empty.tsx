import { Text } from "@mantine/core";
import type { ReactNode } from "react";

/** Explains an empty panel. */
export function Empty({ children }: { children: ReactNode }) {
  return (
    <Text c="var(--muted)" size="sm" px="md" pb="md">
      {children}
    </Text>
  );
}
