import type { DecisionRow, Decisions } from "../api/types";

/** What of an axis is brushed: from, to. Axes are named as columns are; the latency has a name of its own. */
export type Brush = Record<string, [low: number, high: number]>;

export const LATENCY = "latency";

/** A brush as an address has it: `matmul: tile j[2]~4~16`, one to a parameter. */
export function parseBrush(words: readonly string[]): Brush {
  const brush: Brush = {};
  for (const word of words) {
    const parts = word.split("~");
    const high = Number(parts.pop());
    const low = Number(parts.pop());
    const name = parts.join("~");
    if (name !== "" && Number.isFinite(low) && Number.isFinite(high)) {
      brush[name] = [Math.min(low, high), Math.max(low, high)];
    }
  }
  return brush;
}

export function writeBrush(brush: Brush): string[] {
  return Object.entries(brush).map(([name, [low, high]]) => `${name}~${short(low)}~${short(high)}`);
}

function short(value: number): string {
  return String(Number(value.toPrecision(6)));
}

/** The rows within every brushed interval. A row without the choice is not within. */
export function brushedRows({ columns, rows }: Decisions, brush: Brush): DecisionRow[] {
  const tests = Object.entries(brush).flatMap(([name, [low, high]]) => {
    if (name === LATENCY) return [(row: DecisionRow) => row.median_us >= low && row.median_us <= high];
    const place = columns.findIndex((column) => column.name === name);
    if (place < 0) return [];
    return [
      (row: DecisionRow) => {
        const value = row.values[place];
        return value !== null && value !== undefined && value >= low && value <= high;
      },
    ];
  });
  return rows.filter((row) => tests.every((test) => test(row)));
}

/**
 * The places of the `most` columns that matter most, in the order in which the program makes the choices. Columns that
 * never vary tell nothing and stay out.
 */
export function tellingColumns({ columns, rows }: Decisions, most: number): number[] {
  const varies = (place: number) => new Set(rows.map((row) => row.values[place])).size > 1;
  return columns
    .map((column, place) => ({ place, importance: column.importance ?? 0 }))
    .filter(({ place }) => varies(place))
    .sort((a, b) => b.importance - a.importance)
    .slice(0, most)
    .map(({ place }) => place)
    .sort((a, b) => a - b);
}
