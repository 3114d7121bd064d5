import { expect, it } from "vitest";
import { commandOf } from "./command-line";
import { EMPTY_FORM } from "./form";

it("an empty form adds nothing to the command", () => {
  expect(commandOf(EMPTY_FORM, "net.pt2")).toBe("loopwright job submit net.pt2 --wait");
});

it("each option of the form is one of the command, quoted for a shell", () => {
  const form = {
    ...EMPTY_FORM,
    name: "Ada's net",
    targets: ['{"kind":"llvm","mcpu":"znver3"}'],
    otherTargets: "llvm -mcpu=x86-64-v3",
    trials: 200,
    minutes: 1.5,
    deviceSeconds: 40,
    latency: 120,
    untilPlateau: true,
    seed: 3,
    priority: -5,
    shapes: "n=1, 64, m=8",
    space: { fileName: "my space.json", traces: [] },
    force: true,
    exactMath: true,
    tf32: true,
    private: true,
    labels: "rack=a",
    tags: "nightly, two words",
    description: "why",
  };
  expect(commandOf(form, "a net.onnx")).toBe(
    "loopwright job submit 'a net.onnx' " +
      `--target '{"kind":"llvm","mcpu":"znver3"}' --target 'llvm -mcpu=x86-64-v3' --name 'Ada'\\''s net' ` +
      "--max-trials 200 --max-seconds 90 --max-device-seconds 40 --target-latency 120 --until plateau " +
      "--space 'my space.json' --shape n=1,64 --shape m=8 --seed 3 --priority -5 --force --exact-math " +
      "--math tf32 --private --label rack=a --tag nightly --tag 'two words' --description why --wait",
  );
});
