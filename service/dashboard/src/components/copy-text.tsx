import { Button, CopyButton } from "@mantine/core";

/** Puts `text` on the clipboard. `what` tells a screen reader which of several such buttons this is. */
export function CopyText({ text, what }: { text: string; what: string }) {
  return (
    <CopyButton value={text}>
      {({ copied, copy }) => (
        <Button size="compact-xs" variant="default" onClick={copy} aria-label={`Copy: ${what}`}>
          {copied ? "Copied" : "Copy"}
        </Button>
      )}
    </CopyButton>
  );
}
