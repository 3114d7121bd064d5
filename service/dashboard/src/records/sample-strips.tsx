import { Switch } from "@mantine/core";
import { useFlag } from "../components/use-query-state";
import { summariseSamples } from "../format/samples";
import { formatLatency, plural } from "../format/units";
import classes from "./sample-strips.module.css";

export interface Samples {
  label: string;
  /** Seconds. */
  runSecs: number[];
}

/** What a strip shows from its left to its right end, in microseconds. */
interface Scale {
  from: number;
  to: number;
}

/**
 * Raw samples as dots, each set with its median and spread in numbers. All on one scale from zero, which tells how
 * they compare, or each on its own, which tells how it is spread (`?own=1`).
 */
export function SampleStrips({ sets }: { sets: Samples[] }) {
  const [own, setOwn] = useFlag("own");
  const shown = sets.filter(({ runSecs }) => runSecs.length > 0);
  const shared = { from: 0, to: 1e6 * Math.max(...shown.flatMap(({ runSecs }) => runSecs)) };
  return (
    <div className={classes.strips}>
      {shown.map(({ label, runSecs }) => (
        <Strip key={label} label={label} runSecs={runSecs} scale={own ? scaleOf(runSecs) : shared} />
      ))}
      <div className={classes.foot}>
        <span className={classes.note}>
          {own
            ? "Each dot is one sample. Each strip runs from its fastest to its slowest sample."
            : "Each dot is one sample. All strips share a scale that starts at 0."}
        </span>
        <Switch
          size="xs"
          label="Separate scales"
          checked={own}
          onChange={(event) => setOwn(event.currentTarget.checked)}
        />
      </div>
    </div>
  );
}

function scaleOf(runSecs: readonly number[]): Scale {
  return { from: 1e6 * Math.min(...runSecs), to: 1e6 * Math.max(...runSecs) };
}

function Strip({ label, runSecs, scale }: Samples & { scale: Scale }) {
  const summary = summariseSamples(runSecs);
  if (summary === null) return null;
  const { count, median, min, max, quartiles } = summary;
  const width = Math.max(scale.to - scale.from, Number.MIN_VALUE);
  const at = (us: number) => `${(97 * (us - scale.from)) / width + 1}%`;
  return (
    <div>
      <div className={classes.head}>
        <strong>{label}</strong>
        <span className="numeric">
          median {formatLatency(median)}
          <span className="muted">
            {` · quartiles ${formatLatency(quartiles[0])} to ${formatLatency(quartiles[1])} · range ${formatLatency(min)} to ${formatLatency(max)} · ${plural(count, "sample")}`}
          </span>
        </span>
      </div>
      <svg className={classes.plot} aria-hidden="true">
        <line x1="1%" x2="98%" y1="50%" y2="50%" className={classes.axis} />
        {runSecs.map((seconds, index) => (
          <circle
            // biome-ignore lint/suspicious/noArrayIndexKey: a sample is known by its place alone
            key={index}
            cx={at(seconds * 1e6)}
            cy={`${heightOf(index)}%`}
            r={4}
            className={classes.dot}
          />
        ))}
        <line x1={at(median)} x2={at(median)} y1="10%" y2="90%" className={classes.median} />
      </svg>
    </div>
  );
}

/** Dots at the same place would hide each other: the golden ratio spreads them up and down, always the same way. */
function heightOf(index: number): number {
  return 30 + 40 * ((index * 0.618) % 1);
}
