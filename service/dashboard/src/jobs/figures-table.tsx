import { Text } from "@mantine/core";
import type { Job, StoredComparison } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { formatLatency } from "../format/units";
import { type Figure, modelFigures } from "./model-figures";

const columns: Columns<Figure> = [
  { id: "name", header: "Figure", cell: ({ row }) => <strong>{row.original.name}</strong> },
  {
    id: "us",
    header: "One run",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.us),
  },
  { id: "what", header: "What it is", cell: ({ row }) => row.original.what },
];

/** All latencies of one run of the model, folded away: one of them is the headline. */
export function FiguresTable({ job, comparison }: { job: Job; comparison?: StoredComparison | null }) {
  if (job.model === null) return null;
  return (
    <details style={{ marginTop: "0.5rem" }}>
      <Text component="summary" size="sm" style={{ cursor: "pointer" }}>
        All figures of one run
      </Text>
      <DataTable
        label="All figures of one run"
        columns={columns}
        rows={modelFigures(job.model, comparison)}
        rowId={(figure) => figure.name}
      />
    </details>
  );
}
