import { Group, Text } from "@mantine/core";
import type { ReactNode } from "react";
import classes from "./failure-note.module.css";
import { Tag } from "./tag";

interface FailureNoteProps {
  /** Short description of the failure. */
  label: string;
  /** Which programs failed, and where. */
  children: ReactNode;
  /** Message of the failing tool. */
  message: string;
}

/** One failure with its message in full. */
export function FailureNote({ label, children, message }: FailureNoteProps) {
  return (
    <div>
      <Group gap="xs">
        <Tag tone="bad">{label}</Tag>
        <Text size="sm" c="var(--muted)">
          {children}
        </Text>
      </Group>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre className={classes.message} tabIndex={0}>
        {message}
      </pre>
    </div>
  );
}
