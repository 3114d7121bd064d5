import { Text } from "@mantine/core";
import type { Recheck } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { Panel } from "../components/panel";
import { VerdictTag } from "../components/tags";
import { WorkloadName } from "../components/workload-name";
import { formatInterval, formatLatency } from "../format/units";
import { KeyId } from "../signatures/signature";

const columns: Columns<Recheck> = [
  {
    id: "best",
    header: "Best",
    cell: ({ row: { original: best } }) => (
      <WorkloadName
        name={best.name}
        source={best.source}
        hash={best.workload_hash}
        to={`/records/${best.record_id}`}
      />
    ),
  },
  {
    id: "verdict",
    header: "Verdict",
    cell: ({ row: { original: best } }) => (best.result ? <VerdictTag verdict={best.result.verdict} /> : "–"),
  },
  {
    id: "certified",
    header: "Certified",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.certified_best_us),
  },
  {
    id: "now",
    header: "Now",
    meta: { numeric: true },
    cell: ({ row: { original: best } }) =>
      best.result?.best_us == null ? "–" : formatLatency(best.result.best_us),
  },
  {
    id: "slowdown",
    header: "Slowdown",
    meta: { numeric: true },
    cell: ({ row: { original: best } }) =>
      best.result?.slowdown ? formatInterval(best.result.slowdown) : "–",
  },
  {
    id: "signed",
    header: "Signed with",
    cell: ({ row: { original: best } }) => (best.signed ? <KeyId id={best.signed.key_id} /> : "–"),
  },
  { id: "why", header: "Why", cell: ({ row }) => row.original.result?.message ?? row.original.reason },
];

/** The bests that a job races again, with its verdicts. */
export function RecheckPanel({ rechecks }: { rechecks: Recheck[] }) {
  return (
    <Panel title="Bests raced again">
      <Text size="sm" c="var(--muted)" px="md" pb="md">
        The slowdown is the best's time divided by the time in its certificate. If the baseline has become
        slower, too, the quotient is divided by the baseline's slowdown. A slowdown of more than 1.1 is a
        regression, and the next certified schedule that holds becomes the best.
      </Text>
      <DataTable
        label="Bests raced again"
        columns={columns}
        rows={rechecks}
        rowId={(each) => each.certificate_id}
      />
    </Panel>
  );
}
