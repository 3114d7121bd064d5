import { Text } from "@mantine/core";
import type { ReactNode } from "react";

/** Why there is nothing here, within a panel. */
export function Empty({ children }: { children: ReactNode }) {
  return (
    <Text c="var(--muted)" size="sm" px="md" pb="md">
      {children}
    </Text>
  );
}
