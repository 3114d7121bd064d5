import { Group } from "@mantine/core";
import type { Drift } from "../api/types";
import { Tag } from "../components/tag";
import { formatLatency, plural } from "../format/units";
import { driftInWords, driftShape } from "./drift";
import classes from "./drift-line.module.css";

/** The drift of a worker's reference kernel, as a number and a line of its timings. */
export function DriftLine({ drift }: { drift: Drift | null }) {
  if (drift === null) return <span className="muted">not timed yet</span>;
  const shape = driftShape(drift.checks);
  const last = drift.checks.at(-1);
  const words = `${plural(drift.checks.length, "timing")} of the reference kernel, the latest ${formatLatency(last?.us)}`;
  return (
    <Group gap="xs" wrap="nowrap" title={words}>
      {shape && (
        <svg className={classes.plot} viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
          <line x1="0" x2="100" y1={shape.firstY} y2={shape.firstY} className={classes.first} />
          <polyline
            points={shape.points.map((point) => point.join(",")).join(" ")}
            className={classes.line}
            data-flagged={drift.flagged}
          />
        </svg>
      )}
      <span className="numeric">{driftInWords(drift.ratio)}</span>
      {drift.flagged && <Tag tone="warn">drifting</Tag>}
    </Group>
  );
}
