import { expect, it } from "vitest";
import { bodyOf, EMPTY_FORM, guessFormat, parseShapes, problemsOf } from "./form";

it("tells TVMScript from TVM's JSON by how it begins", () => {
  expect(guessFormat('\n  {"root": 1}')).toBe("tvm-json");
  expect(guessFormat("@I.ir_module\nclass M: ...")).toBe("tvmscript");
});

it("reads extents, and says when it cannot", () => {
  expect(parseShapes("n=128, m = 64,")).toEqual({ n: 128, m: 64 });
  expect(parseShapes("")).toEqual({});
  expect(parseShapes("n: 128")).toBeNull();
});

it("a form that cannot be sent says why, by field", () => {
  expect(Object.keys(problemsOf(EMPTY_FORM))).toEqual(["code"]);
  const bad = { ...EMPTY_FORM, code: "x", trials: "", minutes: 0, shapes: "n" };
  expect(Object.keys(problemsOf(bad))).toEqual(["trials", "minutes", "shapes"]);
});

it("makes the body that the service takes", () => {
  const form = {
    ...EMPTY_FORM,
    code: "x",
    name: " mine ",
    target: '{"kind":"llvm"}',
    minutes: 2,
    shapes: "n=8",
    untilPlateau: true,
    tf32: true,
  };
  expect(bodyOf(form)).toMatchObject({
    module: { format: "tvmscript", data: "x" },
    target: { kind: "llvm" },
    name: "mine",
    budget: { max_trials: 64, max_seconds: 120, until: "plateau" },
    shapes: { n: 8 },
    math: "tf32",
  });
  expect(bodyOf({ ...EMPTY_FORM, code: "x" })).toMatchObject({
    target: "auto",
    name: null,
    budget: { max_seconds: null, until: null },
    shapes: null,
    math: "fp32",
  });
});
