import { Button, CopyButton } from "@mantine/core";
import classes from "./command.module.css";

/** Lines to be copied and run elsewhere. */
export function Command({ label, text }: { label: string; text: string }) {
  return (
    <figure className={classes.command}>
      <figcaption className={classes.caption}>
        {label}
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button size="compact-xs" variant="default" onClick={copy} aria-label={`Copy the ${label} lines`}>
              {copied ? "Copied" : "Copy"}
            </Button>
          )}
        </CopyButton>
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre className={classes.text} tabIndex={0}>
        {text}
      </pre>
    </figure>
  );
}
