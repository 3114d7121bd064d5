import { Button } from "@mantine/core";

import { PageHead } from "./page-head";

interface PairHeadProps {
  title: string;
  up: { to: string; label: string };
  a: string;
  b: string;
  onChange: (changes: { a: string; b: string }) => void;
}

/** The head of a page with two things side by side, `a` and `b`, which are empty until they are chosen. */
export function PairHead({ title, up, a, b, onChange }: PairHeadProps) {
  return (
    <PageHead
      title={title}
      up={up}
      actions={
        a !== "" &&
        b !== "" && (
          <Button variant="default" onClick={() => onChange({ a: b, b: a })}>
            Swap sides
          </Button>
        )
      }
    />
  );
}
