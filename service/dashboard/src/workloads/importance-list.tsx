import { Text, Title } from "@mantine/core";
import type { DecisionColumn } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { ShareBar } from "../components/share-bar";

const MOST = 8;

const columns: Columns<DecisionColumn> = [
  { id: "name", header: "Choice", cell: ({ row }) => <code>{row.original.name}</code> },
  { id: "kind", header: "Kind", cell: ({ row }) => row.original.kind },
  {
    id: "importance",
    header: "Share of the gain",
    meta: { numeric: true },
    cell: ({ row }) => <ShareBar share={row.original.importance} />,
  },
];

/** The importance of choices: the gain of each in a model of the latency. */
export function ImportanceList({ columns: all }: { columns: DecisionColumn[] }) {
  const ranked = all
    .filter((column) => (column.importance ?? 0) > 0)
    .sort((a, b) => (b.importance ?? 0) - (a.importance ?? 0))
    .slice(0, MOST);
  return (
    <div>
      <Title order={3} size="h5" px="md">
        Which decisions matter
      </Title>
      {ranked.length === 0 ? (
        <Text size="sm" c="var(--muted)" px="md">
          There are too few trials to estimate which decisions matter.
        </Text>
      ) : (
        <DataTable
          label="Which decisions matter"
          columns={columns}
          rows={ranked}
          rowId={(column) => column.name}
        />
      )}
    </div>
  );
}
