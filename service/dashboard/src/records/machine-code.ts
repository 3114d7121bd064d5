import type { Assembly } from "../api/types";

/** Colours of lines that belong together; see `linked-panes.module.css`. */
const TINTS = 6;

/** Which lines of the three texts belong together, all by number from 1. */
export interface Links {
  /** The line of the scheduled program that a line of the assembly comes from. */
  programOf: Map<number, number>;
  /** The line of the unscheduled program that a line of the scheduled one computes. */
  sourceOf: Map<number, number>;
  /** Colours by lines of the scheduled program. Lines that compute the same line of the source share one. */
  tints: Map<number, number>;
}

export function linksOf({ lines, sources }: Pick<Assembly, "lines" | "sources">): Links {
  const programOf = new Map(
    lines.flatMap(({ number, program_line }) => (program_line === null ? [] : [[number, program_line]])),
  );
  const sourceOf = new Map(
    sources.flatMap((line, index) => (line === null ? [] : [[index + 1, line] as const])),
  );
  const linked = [...new Set([...programOf.values(), ...sourceOf.keys()])].sort((a, b) => a - b);
  const groups = new Map<string, number>();
  const tints = new Map<number, number>();
  for (const line of linked) {
    const group = String(sourceOf.get(line) ?? `own ${line}`);
    if (!groups.has(group)) groups.set(group, groups.size % TINTS);
    tints.set(line, groups.get(group) as number);
  }
  return { programOf, sourceOf, tints };
}

/** Lines of the assembly that are shown: of the hot loop or all, with the compiler's directives or without. */
export function shownLines(assembly: Assembly, options: { all: boolean; directives: boolean }): number[] {
  const hot = hotLoopOf(assembly);
  const inRange = (line: number) => options.all || hot === null || (hot.first <= line && line <= hot.last);
  const numbers = options.directives
    ? Array.from({ length: assembly.text.trimEnd().split("\n").length }, (_, index) => index + 1)
    : assembly.lines.map(({ number }) => number);
  return numbers.filter(inRange);
}

export function hotLoopOf({ loops, hot_loop }: Pick<Assembly, "loops" | "hot_loop">) {
  return hot_loop === null ? null : (loops[hot_loop] ?? null);
}

/** The line of the scheduled program that most of the hot loop's instructions come from. */
export function focusOf(assembly: Pick<Assembly, "loops" | "hot_loop">, { programOf }: Links) {
  const hot = hotLoopOf(assembly);
  const counts = new Map<number, number>();
  for (const [line, of] of programOf) {
    if (hot !== null && hot.first <= line && line <= hot.last) counts.set(of, (counts.get(of) ?? 0) + 1);
  }
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}

/** The lines of the scheduled program that the hot loop computes. */
export function hotProgramLines(assembly: Assembly, { programOf }: Links): Set<number> {
  const hot = hotLoopOf(assembly);
  if (hot === null) return new Set();
  return new Set(
    [...programOf].filter(([line]) => hot.first <= line && line <= hot.last).map(([, of]) => of),
  );
}
