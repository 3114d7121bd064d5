import { Group, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { Breakable } from "./breakable";

interface PageHeadProps {
  title: string;
  /** Title of the browser's tab, if the view's title alone is not clear. */
  documentTitle?: string;
  /** The view above this one. */
  up?: { to: string; label: string };
  /** States and badges beside the title. */
  tags?: ReactNode;
  /** Actions at the right. */
  actions?: ReactNode;
  children?: ReactNode;
}

/** The head of a view: path, title, badges and actions. */
export function PageHead({ title, documentTitle = title, up, tags, actions, children }: PageHeadProps) {
  return (
    <div>
      <title>{`${documentTitle} · Loopwright`}</title>
      {up && (
        <Link to={up.to} className="link" style={{ fontSize: "0.875rem" }}>
          {up.label}
        </Link>
      )}
      <Group justify="space-between" align="flex-start" gap="sm">
        <Group gap="sm" style={{ flex: "1 1 auto", minWidth: 0 }}>
          <Title order={1} style={{ overflowWrap: "anywhere" }}>
            <Breakable name={title} />
          </Title>
          {tags}
        </Group>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {typeof children === "string" ? (
        <Text c="var(--muted)" size="sm" mt={4} maw="52rem">
          {children}
        </Text>
      ) : (
        children
      )}
    </div>
  );
}
