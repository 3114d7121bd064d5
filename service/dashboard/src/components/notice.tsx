import type { ReactNode } from "react";
import classes from "./notice.module.css";

interface NoticeProps {
  tone: "warn" | "bad";
  title: string;
  children: ReactNode;
}

/** An important message. `bad` interrupts a screen reader. */
export function Notice({ tone, title, children }: NoticeProps) {
  return (
    <div className={classes.notice} data-tone={tone} role={tone === "bad" ? "alert" : undefined}>
      <strong className={classes.title}>{title}</strong>
      {children}
    </div>
  );
}
