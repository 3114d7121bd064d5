import { expect, it } from "vitest";
import type { Assembly } from "../api/types";
import { focusOf, hotLoopOf, hotProgramLines, linksOf, shownLines } from "./machine-code";

const assembly: Assembly = {
  language: "asm",
  text: "\t.text\nmain:\n.L1:\n\tvaddps\t%ymm0, %ymm1, %ymm1\n\t.loc 1 7\n\tjne\t.L1\n\tret\n",
  lines: [
    { number: 2, program_line: null },
    { number: 3, program_line: null },
    { number: 4, program_line: 5 },
    { number: 6, program_line: 7 },
    { number: 7, program_line: 7 },
  ],
  program: "1\n2\n3\n4\n5\n6\n7",
  sources: [null, null, 2, null, 2, null, null],
  loops: [{ first: 3, last: 6, depth: 1, model: null }],
  hot_loop: 0,
};

it("lines that compute the same line of the source share a colour, others do not", () => {
  const { programOf, sourceOf, tints } = linksOf(assembly);
  expect([...programOf]).toEqual([
    [4, 5],
    [6, 7],
    [7, 7],
  ]);
  expect([sourceOf.get(3), sourceOf.get(5), sourceOf.get(7)]).toEqual([2, 2, undefined]);
  expect(tints.get(3)).toBe(tints.get(5));
  expect(tints.get(7)).not.toBe(tints.get(5));
  expect(tints.has(1)).toBe(false);
});

it("directives are left out, and all but the hot loop", () => {
  expect(shownLines(assembly, { all: false, directives: false })).toEqual([3, 4, 6]);
  expect(shownLines(assembly, { all: false, directives: true })).toEqual([3, 4, 5, 6]);
  expect(shownLines(assembly, { all: true, directives: false })).toEqual([2, 3, 4, 6, 7]);
  expect(shownLines(assembly, { all: true, directives: true })).toHaveLength(7);
  expect(hotProgramLines(assembly, linksOf(assembly))).toEqual(new Set([5, 7]));
  expect(focusOf(assembly, linksOf(assembly))).toBe(5);
});

it("code without a loop is shown whole", () => {
  const straight = { ...assembly, loops: [], hot_loop: null };
  expect(hotLoopOf(straight)).toBeNull();
  expect(hotProgramLines(straight, linksOf(straight))).toEqual(new Set());
  expect(focusOf(straight, linksOf(straight))).toBeUndefined();
  expect(shownLines(straight, { all: false, directives: false })).toEqual([2, 3, 4, 6, 7]);
});
