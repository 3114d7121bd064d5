import { Fragment } from "react";

/** A name that breaks after underscores, dots and slashes rather than within a word. */
export function Breakable({ name }: { name: string }) {
  return name.split(/(?<=[_./])/).map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of a name stay where they are
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ));
}
