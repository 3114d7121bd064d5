import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { GateFunction, GateState } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { Panel } from "../components/panel";
import { Tag } from "../components/tag";
import { WorkloadName } from "../components/workload-name";
import { formatInterval, formatLatency, plural } from "../format/units";
import { gateQuery } from "./queries";

const columns: Columns<GateFunction> = [
  {
    id: "function",
    header: "Function",
    cell: ({ row: { original: each } }) => (
      <WorkloadName name={each.name} source={each.source} hash={each.workload_hash} />
    ),
  },
  { id: "program", header: "Program", cell: ({ row }) => row.original.change },
  {
    id: "reference",
    header: "Reference",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.reference_us),
  },
  {
    id: "now",
    header: "Now",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.candidate_us),
  },
  {
    id: "ratio",
    header: "Relative time",
    meta: { numeric: true },
    cell: ({ row }) => (row.original.ratio ? formatInterval(row.original.ratio) : "–"),
  },
  { id: "why", header: "Why", cell: ({ row }) => row.original.message ?? "" },
];

/** The comparison of the job's model with its reference; nothing for a job without one. */
export function GatePanel({ id }: { id: string }) {
  const { data: gate } = useQuery(gateQuery(id));
  if (!gate) return null;
  return (
    <Panel title="Comparison with the reference" aside={<Against gate={gate} />}>
      {gate.result ? (
        <>
          <div style={{ padding: "0 1rem 1rem" }}>
            <Verdict result={gate.result} />
          </div>
          <DataTable
            label="Functions against the reference"
            columns={columns}
            rows={gate.result.functions}
            rowId={(each) => `${each.workload_hash} ${each.name} ${each.change}`}
          />
        </>
      ) : (
        <Text size="sm" c="var(--muted)" px="md" pb="md">
          The race against the reference starts when all tasks are finished.
        </Text>
      )}
    </Panel>
  );
}

function Against({ gate }: { gate: GateState }) {
  if (gate.against === "functions") return plural(gate.reference.length, "recorded function");
  return (
    <Link to={`/jobs/${gate.against}`} className="link">
      job {gate.against}
    </Link>
  );
}

const TONES = { "no regression": "good", regression: "bad", unclear: "warn" } as const;

function Verdict({ result }: { result: NonNullable<GateState["result"]> }) {
  const measured = result.rounds > 0;
  return (
    <Text size="sm">
      <Tag tone={TONES[result.verdict]}>{result.verdict}</Tag> One run of the model takes{" "}
      {formatLatency(result.candidate_us)}, and one run of the reference takes{" "}
      {formatLatency(result.reference_us)}: a ratio of {measured ? formatInterval(result.slowdown) : "1.000"},
      of which at most {(1 + result.max_slowdown).toFixed(3)} is allowed.{" "}
      {measured
        ? `Measured in ${plural(result.rounds, "round")}.`
        : "The programs are the same, so nothing was measured."}
    </Text>
  );
}
