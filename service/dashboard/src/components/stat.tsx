import type { ReactNode } from "react";
import classes from "./stat.module.css";

/** Large figures side by side. */
export function Stats({ children }: { children: ReactNode }) {
  return <dl className={classes.stats}>{children}</dl>;
}

interface StatProps {
  label: string;
  value: ReactNode;
  /** Context of the figure. */
  note?: ReactNode;
}

export function Stat({ label, value, note }: StatProps) {
  return (
    <div className={classes.stat}>
      <dt>{label}</dt>
      <dd className={classes.value}>{value}</dd>
      {note && <dd className={classes.note}>{note}</dd>}
    </div>
  );
}
