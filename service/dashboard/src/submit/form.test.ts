import { expect, it } from "vitest";
import {
  AUTO,
  bodyOf,
  chosenTargets,
  EMPTY_FORM,
  guessFormat,
  keepsPreview,
  previewOf,
  problemsOf,
} from "./form";

const LLVM = '{"kind":"llvm"}';
const CUDA = '{"kind":"cuda"}';

it("tells TVMScript from TVM's JSON by how it begins", () => {
  expect(guessFormat('\n  {"root": 1}')).toBe("tvm-json");
  expect(guessFormat("@I.ir_module\nclass M: ...")).toBe("tvmscript");
});

it("a form that cannot be sent says why, by field", () => {
  expect(Object.keys(problemsOf(EMPTY_FORM))).toEqual(["code"]);
  const bad = { ...EMPTY_FORM, code: "x", trials: "", minutes: 0, shapes: "n", otherTargets: "{" };
  expect(Object.keys(problemsOf(bad))).toEqual(["trials", "minutes", "shapes", "otherTargets"]);
  const worse = { ...EMPTY_FORM, code: "x", deviceSeconds: -1, latency: 0, labels: "rack" };
  expect(Object.keys(problemsOf(worse))).toEqual(["deviceSeconds", "latency", "labels"]);
});

it("makes the body that the service takes", () => {
  const form = {
    ...EMPTY_FORM,
    code: "x",
    name: " mine ",
    targets: [LLVM],
    minutes: 2,
    deviceSeconds: "30",
    latency: 120,
    labels: "rack=a",
    space: { fileName: "space.json", traces: [[]] },
    shapes: "n=8",
    untilPlateau: true,
    tf32: true,
  };
  expect(bodyOf(form)).toMatchObject({
    module: { format: "tvmscript", data: "x" },
    target: { kind: "llvm" },
    name: "mine",
    budget: {
      max_trials: 64,
      max_seconds: 120,
      max_device_seconds: 30,
      target_latency_us: 120,
      until: "plateau",
    },
    labels: { rack: "a" },
    space: [[]],
    shapes: { n: 8 },
    math: "tf32",
  });
  expect(bodyOf({ ...EMPTY_FORM, code: "x" })).toMatchObject({
    target: "auto",
    name: null,
    budget: { max_seconds: null, max_device_seconds: null, target_latency_us: null, until: null },
    labels: {},
    space: null,
    shapes: null,
    math: "fp32",
  });
});

it("several targets make one body, whose preview is of the first", () => {
  const form = { ...EMPTY_FORM, code: "x", targets: [LLVM, CUDA], otherTargets: "llvm -mcpu=znver3" };
  expect(bodyOf(form)).toMatchObject({
    target: AUTO,
    targets: [{ kind: "llvm" }, { kind: "cuda" }, "llvm -mcpu=znver3"],
  });
  expect(previewOf(form).target).toEqual({ kind: "llvm" });
  expect(previewOf(form)).not.toHaveProperty("targets");
});

it("auto stands alone, and gives way to other targets", () => {
  expect(chosenTargets([AUTO, LLVM])).toEqual([LLVM]);
  expect(chosenTargets([LLVM, CUDA, AUTO])).toEqual([AUTO]);
  expect(chosenTargets([])).toEqual([AUTO]);
  expect(bodyOf({ ...EMPTY_FORM, otherTargets: "llvm" })).toMatchObject({ target: "llvm" });
});

it("several values of an extent are several shapes", () => {
  expect(bodyOf({ ...EMPTY_FORM, shapes: "n=1, 64" }).shapes).toEqual([{ n: 1 }, { n: 64 }]);
});

it("a preview is kept by what it does not show", () => {
  expect(keepsPreview({ name: "a", description: "b", latency: 3 })).toBe(true);
  for (const change of [{ targets: [LLVM] }, { labels: "a=b" }, { space: null }, { code: "x" }])
    expect(keepsPreview(change)).toBe(false);
});
