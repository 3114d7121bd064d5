import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Lineage, RecordDetail } from "../api/types";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { formatLatency } from "../format/units";
import classes from "./lineage-panel.module.css";
import { lineageQuery } from "./queries";

type Changes = Lineage["against_best"];

/** Where a schedule comes from: its ancestors with what each step changed, and what the best does differently. */
export function LineagePanel({ record }: { record: RecordDetail }) {
  const query = useQuery(lineageQuery(record.id));
  return (
    <Panel title="Lineage">
      <Stack gap="md" px="md" pb="md">
        <Ready query={query}>
          {(lineage) => (
            <>
              <Ancestors record={record} lineage={lineage} />
              <AgainstBest record={record} lineage={lineage} />
            </>
          )}
        </Ready>
      </Stack>
    </Panel>
  );
}

function Ancestors({ record, lineage: { ancestors } }: { record: RecordDetail; lineage: Lineage }) {
  if (ancestors.length === 0) {
    return (
      <Text size="sm" c="var(--muted)">
        This schedule descends from no other trial: its origin is {record.origin}.
      </Text>
    );
  }
  const oldestFirst = [...ancestors].reverse();
  return (
    <ol className={classes.line} aria-label="Ancestors, the oldest first">
      {oldestFirst.map((ancestor, index) => (
        <li key={ancestor.record_id}>
          <Link to={`/records/${ancestor.record_id}`} className="link">
            <code>{ancestor.record_id.slice(0, 8)}</code>
          </Link>{" "}
          <span className="muted numeric">
            {ancestor.origin}, {formatLatency(ancestor.median_us)}
          </span>
          <Changed changes={ancestor.changes} />
          {index === oldestFirst.length - 1 && (
            <div className={classes.self}>
              <strong>This schedule</strong>{" "}
              <span className="muted numeric">
                {formatLatency(record.median_us)} when it was first measured
              </span>
            </div>
          )}
        </li>
      ))}
    </ol>
  );
}

function AgainstBest({ record, lineage }: { record: RecordDetail; lineage: Lineage }) {
  if (lineage.best_id === null) return null;
  return (
    <div>
      <Text size="sm">
        The best schedule of this workload is{" "}
        <Link to={`/records/${lineage.best_id}`} className="link">
          <code>{lineage.best_id.slice(0, 8)}</code>
        </Link>{" "}
        with {formatLatency(lineage.best_us)}.{" "}
        {lineage.against_best.length > 0 ? "It decides differently:" : "No named decision tells them apart."}{" "}
        <Link to={`/compare?a=${record.id}&b=${lineage.best_id}`} className="link">
          Compare
        </Link>
      </Text>
      <Changed changes={lineage.against_best} />
    </div>
  );
}

function Changed({ changes }: { changes: Changes }) {
  return (
    <ul className={classes.changes}>
      {changes.map(({ name, before, after }) => (
        <li key={name}>
          <code>{name}</code>{" "}
          <span className="numeric">
            {before || "none"} → {after || "none"}
          </span>
        </li>
      ))}
    </ul>
  );
}
