import { summariseSamples } from "../format/samples";
import { formatLatency, plural } from "../format/units";
import classes from "./sample-strips.module.css";

export interface Samples {
  label: string;
  /** Seconds. */
  runSecs: number[];
}

/** Raw samples as dots on one common scale from zero, each set with its median and spread in numbers. */
export function SampleStrips({ sets }: { sets: Samples[] }) {
  const shown = sets.filter(({ runSecs }) => runSecs.length > 0);
  const longest = Math.max(...shown.flatMap(({ runSecs }) => runSecs));
  return (
    <div className={classes.strips}>
      {shown.map(({ label, runSecs }) => (
        <Strip key={label} label={label} runSecs={runSecs} longest={longest} />
      ))}
      <span className={classes.note}>One dot is one sample; all strips share a scale that starts at 0.</span>
    </div>
  );
}

function Strip({ label, runSecs, longest }: Samples & { longest: number }) {
  const summary = summariseSamples(runSecs);
  if (summary === null) return null;
  const { count, median, min, max, quartiles } = summary;
  const at = (us: number) => `${(97 * us) / (longest * 1e6) + 1}%`;
  return (
    <div>
      <div className={classes.head}>
        <strong>{label}</strong>
        <span className="numeric">
          median {formatLatency(median)}
          <span className="muted">
            {` · middle half ${formatLatency(quartiles[0])} to ${formatLatency(quartiles[1])} · all ${formatLatency(min)} to ${formatLatency(max)} · ${plural(count, "sample")}`}
          </span>
        </span>
      </div>
      <svg className={classes.plot} aria-hidden="true">
        <line x1="1%" x2="98%" y1="50%" y2="50%" className={classes.axis} />
        {runSecs.map((seconds, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a sample is known by its place alone
          <circle key={index} cx={at(seconds * 1e6)} cy="50%" r={4} className={classes.dot} />
        ))}
        <line x1={at(median)} x2={at(median)} y1="10%" y2="90%" className={classes.median} />
      </svg>
    </div>
  );
}
