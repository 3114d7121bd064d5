import { Group, Paper, Title } from "@mantine/core";
import { type ReactNode, useId } from "react";

interface PanelProps {
  title: string;
  children: ReactNode;
  /** Shown at the right of the title. */
  aside?: ReactNode;
}

/** A titled part of a view. */
export function Panel({ title, children, aside }: PanelProps) {
  const id = useId();
  return (
    <Paper
      component="section"
      withBorder
      bg="var(--surface)"
      aria-labelledby={id}
      style={{ minWidth: 0, height: "100%" }}
    >
      <Group justify="space-between" gap="sm" px="md" pt="md" pb="xs">
        <Title order={2} id={id}>
          {title}
        </Title>
        {aside && <div style={{ fontSize: "0.875rem" }}>{aside}</div>}
      </Group>
      {children}
    </Paper>
  );
}
