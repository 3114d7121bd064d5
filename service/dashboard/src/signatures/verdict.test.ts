import { expect, it } from "vitest";
import { signedResult } from "./verdict";

const RESULT = {
  verdict: "unclear",
  rounds: 40,
  slowdown: { value: 1.05, low: 0.9, high: null },
  best_us: 12.5,
  baseline_us: 40,
  conditions: "TVM 0.27.0, Linux 6.8",
  message: null,
};

function signed(document: unknown) {
  return { document: JSON.stringify(document), key_id: "1111", signature: "" };
}

it("finds the result that was signed", () => {
  const document = { format: 1, kind: "recheck", certificate_id: "c", regressed_at: null, result: RESULT };
  expect(signedResult(signed(document))).toEqual(RESULT);
});

it.each([
  { format: 2, kind: "recheck", result: RESULT },
  { format: 1, kind: "certificate", result: RESULT },
  { format: 1, best_run_secs: [] },
])("finds none in a document of another form", (document) => {
  expect(signedResult(signed(document))).toBeNull();
});
