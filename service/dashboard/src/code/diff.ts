import { diffArrays, diffWordsWithSpace } from "diff";
import { pairLines } from "./pair-lines";

/** A stretch of characters, [start, end), that one side has and the other has not. */
export type Stretch = [start: number, end: number];

/** One side of a row: which line of that side's text, from 0, and what of it is changed. */
export interface Side {
  line: number;
  changed: Stretch[];
}

/** Lines that belong beside each other. A side is null where the other stands alone. */
export interface DiffRow {
  kind: "same" | "changed" | "removed" | "added";
  left: Side | null;
  right: Side | null;
}

/** Two texts, line by line side by side. A line that changed shares a row with what it became. */
export function diffRows(left: readonly string[], right: readonly string[]): DiffRow[] {
  const rows: DiffRow[] = [];
  let [atLeft, atRight] = [0, 0];
  const changes = diffArrays([...left], [...right]);
  for (let index = 0; index < changes.length; index++) {
    const { value, added, removed } = changes[index] as (typeof changes)[number];
    if (!added && !removed) {
      for (const _ of value) rows.push({ kind: "same", left: side(atLeft++), right: side(atRight++) });
      continue;
    }
    const next = changes[index + 1];
    const both = removed && next?.added;
    if (both) index++;
    const out = removed ? value.length : 0;
    const into = both ? next.value.length : added ? value.length : 0;
    rows.push(...hunkRows(left, right, atLeft, atRight, out, into));
    atLeft += out;
    atRight += into;
  }
  return rows;
}

/** Rows of a place where `out` lines of the left side, from `atLeft` on, gave way to `into` lines of the right. */
function hunkRows(
  left: readonly string[],
  right: readonly string[],
  atLeft: number,
  atRight: number,
  out: number,
  into: number,
): DiffRow[] {
  const rows: DiffRow[] = [];
  const pairs = pairLines(left.slice(atLeft, atLeft + out), right.slice(atRight, atRight + into));
  let [l, r] = [0, 0];
  for (const [nextL, nextR] of [...pairs, [out, into] as const]) {
    // Unpaired lines share rows while both sides have some, to save space.
    while (l < nextL && r < nextR) {
      rows.push({ kind: "changed", left: side(atLeft + l++), right: side(atRight + r++) });
    }
    while (l < nextL) rows.push({ kind: "removed", left: side(atLeft + l++), right: null });
    while (r < nextR) rows.push({ kind: "added", left: null, right: side(atRight + r++) });
    if (l < out && r < into) {
      rows.push(
        changedRow(left[atLeft + l] as string, right[atRight + r] as string, atLeft + l, atRight + r),
      );
      l++;
      r++;
    }
  }
  return rows;
}

function side(line: number): Side {
  return { line, changed: [] };
}

/** Marks changed words; a line with another indentation only has none. */
function changedRow(left: string, right: string, leftLine: number, rightLine: number): DiffRow {
  const sides: [Stretch[], Stretch[]] = [[], []];
  let [atLeft, atRight] = [indentOf(left), indentOf(right)];
  for (const { value, added, removed } of diffWordsWithSpace(left.trimStart(), right.trimStart())) {
    if (removed) sides[0].push([atLeft, atLeft + value.length]);
    if (added) sides[1].push([atRight, atRight + value.length]);
    if (!added) atLeft += value.length;
    if (!removed) atRight += value.length;
  }
  return {
    kind: "changed",
    left: { line: leftLine, changed: sides[0] },
    right: { line: rightLine, changed: sides[1] },
  };
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Rows to be shown: those that differ with `context` unchanged ones around them; a number says how many are left out. */
export function withContext(rows: readonly DiffRow[], context: number): (DiffRow | number)[] {
  const shown = new Set<number>();
  rows.forEach(({ kind }, index) => {
    if (kind === "same") return;
    for (let near = index - context; near <= index + context; near++) shown.add(near);
  });
  const result: (DiffRow | number)[] = [];
  rows.forEach((row, index) => {
    if (shown.has(index)) result.push(row);
    else if (typeof result.at(-1) === "number") result[result.length - 1] = (result.at(-1) as number) + 1;
    else result.push(1);
  });
  return result;
}
