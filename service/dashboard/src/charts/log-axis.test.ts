import { describe, expect, it } from "vitest";
import { logAxis } from "./log-axis";

describe("logAxis", () => {
  it("covers the values and marks round numbers between", () => {
    const { min, max, ticks } = logAxis([12, 900]);
    expect(min).toBeLessThan(12);
    expect(max).toBeGreaterThan(900);
    expect(ticks).toEqual([20, 50, 100, 200, 500, 1_000]);
  });

  it("finds enough ticks within a narrow range", () => {
    const { ticks } = logAxis([250, 840]);
    expect(ticks).toEqual([300, 500, 700]);
    expect(logAxis([100, 101]).ticks.length).toBeGreaterThan(0);
  });
});
