import { diffArrays, diffWordsWithSpace } from "diff";

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

/** Two texts, line by line side by side. Lines that differ but stand in the same place share a row. */
export function diffRows(left: readonly string[], right: readonly string[]): DiffRow[] {
  const rows: DiffRow[] = [];
  let [atLeft, atRight] = [0, 0];
  let removed = 0;
  for (const { value, added, removed: isRemoved } of [...diffArrays([...left], [...right]), END]) {
    if (isRemoved) {
      removed += value.length;
      continue;
    }
    const paired = added ? Math.min(removed, value.length) : 0;
    for (let index = 0; index < paired; index++) {
      rows.push(changedRow(left[atLeft] as string, right[atRight] as string, atLeft++, atRight++));
    }
    for (; removed > paired; removed--) {
      rows.push({ kind: "removed", left: { line: atLeft++, changed: [] }, right: null });
    }
    removed = 0;
    for (let index = paired; index < value.length; index++) {
      const right = { line: atRight++, changed: [] };
      if (added) rows.push({ kind: "added", left: null, right });
      else rows.push({ kind: "same", left: { line: atLeft++, changed: [] }, right });
    }
  }
  return rows;
}

/** Nothing, unchanged: what was removed last is still to be told. */
const END = { value: [] as string[], added: false, removed: false };

function changedRow(left: string, right: string, leftLine: number, rightLine: number): DiffRow {
  const sides: [Stretch[], Stretch[]] = [[], []];
  let [atLeft, atRight] = [0, 0];
  for (const { value, added, removed } of diffWordsWithSpace(left, right)) {
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
