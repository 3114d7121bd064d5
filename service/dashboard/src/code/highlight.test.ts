import { expect, it } from "vitest";
import { highlight } from "./highlight";

const text = (code: string, language: string) =>
  highlight(code, language)
    .map((line) => line.map((token) => token.text).join(""))
    .join("\n");

it.each([
  ["python", 'def f(a: "T.handle<x>"):\n    """two\nlines & more"""\n    return a  # it\'s'],
  ["asm", '\t.globl\tmain\nmain:\n\tvmovups (%rdi,%rax,4), %ymm0 # "x" < y\n\tret'],
  ["cuda", "__global__ void k(float* a) { a[0] = 1.0f && 2; }"],
  ["nothing we know", "a < b & c"],
])("%s keeps every character", (language, code) => {
  expect(text(code, language)).toBe(code);
});

it("a token that goes over a line end has its scope on both lines", () => {
  const lines = highlight('x = """one\ntwo"""', "python");
  expect(lines[0]?.at(-1)).toEqual({ text: '"""one', scope: "hljs-string" });
  expect(lines[1]?.[0]).toEqual({ text: 'two"""', scope: "hljs-string" });
});

it("assembly tells what is done from what it is done to", () => {
  const [label, instruction] = highlight("main:\n\tmovq\t$64, %rax", "asm");
  expect(label?.[0]?.scope).toBe("hljs-symbol");
  expect(instruction?.map(({ text, scope }) => [text.trim(), scope]).filter(([, scope]) => scope)).toEqual([
    ["movq", "hljs-keyword"],
    ["$64", "hljs-number"],
    ["%rax", "hljs-variable"],
  ]);
});

it("integers of 64 bits in TVMScript are bare, others keep their type", () => {
  expect(text("T.grid(T.int64(64), T.int64(-3)) + T.int32(5) + T.int64(n)", "python")).toBe(
    "T.grid(64, -3) + T.int32(5) + T.int64(n)",
  );
  expect(text("T.int64(64)", "cuda")).toBe("T.int64(64)");
});
