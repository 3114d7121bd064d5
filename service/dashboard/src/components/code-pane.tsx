import { Button, CopyButton } from "@mantine/core";
import classes from "./code-pane.module.css";

/** A program with line numbers, in a pane that scrolls by itself. */
export function CodePane({ label, code }: { label: string; code: string }) {
  const lines = code.replace(/\n$/, "").split("\n");
  return (
    <figure className={classes.pane}>
      <figcaption className={classes.caption}>
        <span>{label}</span>
        <CopyButton value={code}>
          {({ copied, copy }) => (
            <Button size="compact-xs" variant="default" onClick={copy} aria-label={`Copy: ${label}`}>
              {copied ? "Copied" : "Copy"}
            </Button>
          )}
        </CopyButton>
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre className={classes.code} tabIndex={0}>
        {lines.map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a line is known by its number
          <span key={index} className={classes.line}>
            {line}
            {"\n"}
          </span>
        ))}
      </pre>
    </figure>
  );
}
