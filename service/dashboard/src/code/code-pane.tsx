import { useMemo } from "react";
import { CopyText } from "../components/copy-text";
import classes from "./code.module.css";
import { CodeLine } from "./code-line";
import { highlight } from "./highlight";

interface CodePaneProps {
  label: string;
  code: string;
  /** One that `highlight` knows; anything else is shown as plain text. */
  language: string;
}

/** A program with line numbers, in a pane that scrolls by itself. */
export function CodePane({ label, code, language }: CodePaneProps) {
  const lines = useMemo(() => highlight(code, language), [code, language]);
  return (
    <figure className={classes.pane}>
      <figcaption className={classes.caption}>
        <span>{label}</span>
        <CopyText text={code} what={label} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre className={classes.code} tabIndex={0}>
        {lines.map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a line is known by its number
          <span key={index} className={classes.line}>
            <CodeLine line={line} />
            {"\n"}
          </span>
        ))}
      </pre>
    </figure>
  );
}
