import classes from "./code.module.css";
import type { Stretch } from "./diff";
import type { Line, Token } from "./highlight";

/** One line's tokens; what is changed against the other side of a diff is marked. */
export function CodeLine({ line, changed = [] }: { line: Line; changed?: Stretch[] }) {
  return split(line, changed).map(({ text, scope, marked, at }) =>
    marked ? (
      <mark key={at} className={`${classes.mark} ${scope ?? ""}`}>
        {text}
      </mark>
    ) : (
      <span key={at} className={scope ?? undefined}>
        {text}
      </span>
    ),
  );
}

/** The tokens, cut where a changed stretch begins or ends. `at` is where each begins in the line. */
function split(line: Line, changed: Stretch[]): (Token & { marked: boolean; at: number })[] {
  const cuts = changed.flat();
  let start = 0;
  return line.flatMap(({ text, scope }) => {
    const end = start + text.length;
    const edges = [start, ...cuts.filter((cut) => cut > start && cut < end), end];
    const parts = edges.slice(1).map((until, index) => {
      const at = edges[index] as number;
      const marked = changed.some(([from, to]) => at >= from && at < to);
      return { text: text.slice(at - start, until - start), scope, marked, at };
    });
    start = end;
    return parts;
  });
}
