import type { RecordDetail } from "../api/types";
import { FIRST_MEASURED } from "./race";
import type { Samples } from "./sample-strips";

/** The samples of the closing race, whose two sides were timed together, or else the trial's own samples. */
export function sampleSets({ certificate, run_secs }: RecordDetail): Samples[] {
  if (certificate === null) return [{ label: "This trial", runSecs: run_secs }];
  return [
    { label: "Baseline, in the closing race", runSecs: certificate.baseline_run_secs },
    { label: "This schedule, in the closing race", runSecs: certificate.best_run_secs },
    ...(certificate.library === null
      ? []
      : [
          {
            label: `${certificate.library.name}, in the closing race`,
            runSecs: certificate.library.run_secs,
          },
        ]),
    // A first choice that only the closing race has timed has no others.
    ...(String(run_secs) === String(certificate.best_run_secs)
      ? []
      : [{ label: `This schedule, ${FIRST_MEASURED}`, runSecs: run_secs }]),
  ];
}
