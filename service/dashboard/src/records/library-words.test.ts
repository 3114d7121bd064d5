import { describe, expect, it } from "vitest";
import { libraryWords } from "./library-words";

describe("libraryWords", () => {
  const library = { name: "PyTorch 2.13.0", us: 50, run_secs: [50e-6] };
  const took = "PyTorch 2.13.0, which computes the same operation, took 50.0\u00a0µs in the same rounds";

  it("says that the library is faster, and to call it", () => {
    expect(libraryWords(library, 67)).toBe(
      `${took}: the library is 1.3× faster. Call the library instead if you can.`,
    );
  });

  it("says that the schedule is faster", () => {
    expect(libraryWords(library, 25)).toBe(`${took}: this schedule is 2.0× faster.`);
  });

  it.each([49.8, 50.2])("calls neither of them faster by a hundredth that is not there", (us) => {
    expect(libraryWords(library, us)).toBe(`${took}: as long as this schedule.`);
  });
});
