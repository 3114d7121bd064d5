import { Tooltip } from "@mantine/core";
import type { ReactNode } from "react";
import classes from "./tag.module.css";

export type Tone = "neutral" | "active" | "good" | "warn" | "bad";

interface TagProps {
  tone: Tone;
  children: ReactNode;
  icon?: ReactNode;
  /** A longer text, shown on hover and focus. */
  hint?: string;
}

/** A coloured word. The word has all information; the colour only helps to find it. */
export function Tag({ tone, children, icon, hint }: TagProps) {
  const tag = (
    <span className={classes.tag} data-tone={tone}>
      {icon}
      {children}
    </span>
  );
  return hint === undefined ? (
    tag
  ) : (
    <Tooltip label={hint} multiline maw={320} events={{ hover: true, focus: true, touch: true }}>
      {tag}
    </Tooltip>
  );
}
