import type { ReactNode } from "react";
import classes from "./facts.module.css";

/** Labelled values side by side, as many in a row as fit. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className={classes.facts}>{children}</dl>;
}

interface FactProps {
  label: string;
  children: ReactNode;
  /** Further text, on hover. */
  title?: string;
}

export function Fact({ label, children, title }: FactProps) {
  return (
    <div title={title}>
      <dt>{label}</dt>
      <dd className="numeric">{children}</dd>
    </div>
  );
}
