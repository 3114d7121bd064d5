import { expect, test } from "vitest";
import { excerpt, lineOf } from "./error-line";

test("a message names its line, or none", () => {
  expect(lineOf("line 12: `import torch` is not accepted; leave it out")).toBe(12);
  expect(lineOf("The module has no function. A baseline 3 is none.")).toBeNull();
});

test("a line is shown with its neighbours, at the ends with fewer", () => {
  const code = "a\nb\nc\nd\ne\nf";
  expect(
    excerpt(code, 4).map(({ number, text, isNamed }) => `${number}${text}${isNamed ? "!" : ""}`),
  ).toEqual(["2b", "3c", "4d!", "5e", "6f"]);
  expect(excerpt(code, 1).map(({ number }) => number)).toEqual([1, 2, 3]);
  expect(excerpt(code, 6).at(-1)).toEqual({ number: 6, text: "f", isNamed: true });
});

test("a line that the module does not have is not shown", () => {
  for (const line of [null, 0, 7]) expect(excerpt("a\nb", line)).toEqual([]);
});
