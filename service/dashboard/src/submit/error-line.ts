/** A line of a module, numbered from 1. */
export interface NumberedLine {
  number: number;
  text: string;
  isNamed: boolean;
}

/** Lines shown before and after the one that is named. */
const AROUND = 2;

/** The line that a message names, as "line 2: …" does; null if it names none. */
export function lineOf(message: string): number | null {
  const found = /\bline (\d+)\b/i.exec(message);
  return found ? Number(found[1]) : null;
}

/** The line and its neighbours; none if the module has no such line. */
export function excerpt(code: string, named: number | null): NumberedLine[] {
  const lines = code.split("\n");
  if (named === null || named < 1 || named > lines.length) return [];
  const first = Math.max(1, named - AROUND);
  return lines.slice(first - 1, named + AROUND).map((text, index) => {
    const number = first + index;
    return { number, text, isNamed: number === named };
  });
}
