import { expect, it } from "vitest";
import { effectsOf, effectWords } from "./ablation";

const change = (name: string, before: string, after: string) => ({ name, before, after });
const range = (value: number, low: number, high: number | null) => ({ value, low, high });

it("the decision that brings most comes first, failures last, and levels of a tile are one decision", () => {
  const effects = effectsOf([
    { changes: [change("unroll", "16", "64")], us: 101, slowdown: range(1.01, 0.97, 1.05), message: null },
    { changes: [change("rule", "a", "b")], us: null, slowdown: null, message: "no such block" },
    {
      changes: [change("C: tile i[2]", "2", "4"), change("C: tile i[3]", "8", "4")],
      us: 140,
      slowdown: range(1.4, 1.36, 1.45),
      message: null,
    },
  ]);
  expect(effects.map(({ decision, own, other }) => [decision, own, other])).toEqual([
    ["C: tile i[2, 3]", "2, 8", "4, 4"],
    ["unroll", "16", "64"],
    ["rule", "a", "b"],
  ]);
});

it("words are no surer than the interval", () => {
  const words = (slowdown: ReturnType<typeof range> | null) =>
    effectWords({ decision: "d", own: "1", other: "2", us: 1, slowdown, message: "it crashed" });
  expect(words(range(1.4, 1.36, 1.45))).toBe("1.40× (1.36× to 1.45×)");
  expect(words(range(1.01, 0.97, 1.05))).toMatch(/^no difference that the race shows/);
  expect(words(range(1.4, 0, null))).toMatch(/^no difference/);
  expect(words(range(0.9, 0.85, 0.94))).toMatch(/^nothing: the other is faster/);
  expect(words(null)).toBe("it crashed");
});
