import { Text } from "@mantine/core";
import type { ComparedEngine, StoredComparison } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { formatLatency, formatSmall, plural } from "../format/units";

function Ratio({ engine }: { engine: ComparedEngine }) {
  if (!engine.ratio) return "–";
  const { value, low, high } = engine.ratio;
  return (
    <span title="Latency divided by Loopwright's latency in the same round, with the 95 % confidence interval">
      <strong>{value.toFixed(2)}</strong>{" "}
      <span className="muted">
        ({low.toFixed(2)} to {high.toFixed(2)})
      </span>
    </span>
  );
}

function How({ engine }: { engine: ComparedEngine }) {
  if (engine.failure) {
    return (
      <>
        <span style={{ color: "var(--bad-text)" }}>{engine.failure}</span>
        {engine.install && (
          <Text fz="xs">
            <code>{engine.install}</code>
          </Text>
        )}
      </>
    );
  }
  const versions = Object.entries(engine.versions).map(([name, version]) => `${name} ${version}`);
  return (
    <>
      {[engine.setting, engine.note].filter(Boolean).join(", ")}
      <Text fz="xs" c="var(--muted)">
        {versions.join(", ")}
      </Text>
    </>
  );
}

const columns: Columns<ComparedEngine> = [
  { id: "engine", header: "Engine", cell: ({ row }) => <strong>{row.original.title}</strong> },
  {
    id: "latency",
    header: "Latency",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.us),
  },
  {
    id: "ratio",
    header: "Relative to Loopwright",
    meta: { numeric: true },
    cell: ({ row }) => <Ratio engine={row.original} />,
  },
  {
    id: "error",
    header: "Error",
    meta: { numeric: true },
    cell: ({ row: { original: engine } }) => (engine.error === null ? "–" : formatSmall(engine.error)),
  },
  {
    id: "compiled",
    header: "Compiled in",
    meta: { numeric: true },
    cell: ({ row: { original: engine } }) =>
      engine.compile_seconds === null ? "–" : formatLatency(engine.compile_seconds * 1e6),
  },
  { id: "how", header: "Settings", cell: ({ row }) => <How engine={row.original} /> },
];

/** A model's latency in several engines, side by side on one machine. */
export function EngineTable({ comparison }: { comparison: StoredComparison }) {
  return (
    <>
      <DataTable
        label="Engines"
        columns={columns}
        rows={comparison.engines}
        rowId={(engine) => engine.name}
      />
      <Text fz="sm" c="var(--muted)" px="md" py="sm">
        {comparison.machine}, {plural(comparison.threads, "thread")}, {comparison.precision}; outputs compared
        with those of {comparison.reference}. A user made this measurement; no certificate covers it.
      </Text>
    </>
  );
}
