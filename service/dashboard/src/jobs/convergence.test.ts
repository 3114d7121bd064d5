import { describe, expect, it } from "vitest";
import type { Trial } from "../api/types";
import { convergence, mergeTrials } from "./convergence";

function trial(number: number, median_us: number | null, state: Trial["state"] = "measured"): Trial {
  return {
    id: `t${number}`,
    workload_hash: "w",
    number,
    state,
    origin: "random",
    predicted: null,
    median_us,
    failure_kind: state === "failed" ? "COMPILE" : null,
    failure_stage: null,
    failure_message: null,
    worker: null,
    created_at: "2026-03-01T12:00:00Z",
    finished_at: null,
    spans: [],
  };
}

describe("convergence", () => {
  it("steps down at each improvement and runs on to the last trial", () => {
    const trials = [trial(3, 90), trial(0, 100), trial(1, 120), trial(2, 80), trial(4, 50), trial(5, 70)];
    expect(convergence(trials)).toEqual({
      measured: [
        [1, 120],
        [2, 80],
        [3, 90],
        [4, 50],
        [5, 70],
      ],
      best: [
        [0, 100],
        [2, 80],
        [4, 50],
        [5, 50],
      ],
      failed: [],
    });
  });

  it("keeps failures apart: they have no latency, but the line runs past them", () => {
    const curve = convergence([trial(1, 40), trial(2, null, "failed")]);
    expect(curve.failed).toEqual([2]);
    expect(curve.best).toEqual([
      [1, 40],
      [2, 40],
    ]);
  });

  it("leaves out what is not measured yet", () => {
    expect(convergence([trial(1, null, "proposed"), trial(2, null, "proposed")])).toEqual({
      measured: [],
      best: [],
      failed: [],
    });
  });
});

describe("mergeTrials", () => {
  it("takes news from the stream, and new trials", () => {
    const merged = mergeTrials(
      [trial(1, null, "proposed")],
      new Map([trial(1, 5), trial(2, 6)].map((t) => [t.id, t])),
    );
    expect(merged.map((t) => [t.id, t.state, t.median_us])).toEqual([
      ["t1", "measured", 5],
      ["t2", "measured", 6],
    ]);
  });

  it("does not let a replayed event set a trial back", () => {
    const merged = mergeTrials([trial(1, 5)], new Map([["t1", trial(1, null, "proposed")]]));
    expect(merged[0]?.median_us).toBe(5);
  });
});
