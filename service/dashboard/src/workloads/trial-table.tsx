import { Button, Checkbox, Group, Text, Title } from "@mantine/core";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import type { DecisionRow } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { CertifiedTag } from "../components/tags";
import { formatLatency, plural } from "../format/units";

const MOST = 10;

interface TrialTableProps {
  /** The fastest first. */
  rows: DecisionRow[];
  /** Number of trials without the filter. */
  of: number;
}

/** The trials within the brush. Any two can be compared. */
export function TrialTable({ rows, of }: TrialTableProps) {
  const navigate = useNavigate();
  const [picked, setPicked] = useState<string[]>([]);
  const [more, setMore] = useState(false);
  const shown = more ? rows : rows.slice(0, MOST);
  const columns: Columns<DecisionRow> = [
    {
      id: "pick",
      header: "Compare",
      cell: ({ row: { original: trial } }) => (
        <Checkbox
          size="xs"
          aria-label={`Compare ${trial.record_id}`}
          checked={picked.includes(trial.record_id)}
          onChange={() => setPicked(toggled(picked, trial.record_id))}
        />
      ),
    },
    {
      id: "record",
      header: "Record",
      cell: ({ row }) => (
        <Link to={`/records/${row.original.record_id}`} className="link">
          <code>{row.original.record_id}</code>
        </Link>
      ),
    },
    {
      id: "latency",
      header: "Latency",
      meta: { numeric: true },
      cell: ({ row }) => formatLatency(row.original.median_us),
    },
    { id: "origin", header: "Origin", cell: ({ row }) => row.original.origin },
    {
      id: "certified",
      header: "Certificate",
      cell: ({ row }) => (row.original.certified ? <CertifiedTag certified /> : "–"),
    },
  ];
  return (
    <div>
      <Group justify="space-between" px="md" pb="xs" gap="xs">
        <Title order={3} size="h5">
          Trials
        </Title>
        <Group gap="sm">
          <Text size="sm" c="var(--muted)" role="status" className="numeric">
            {rows.length === of ? plural(of, "trial") : `${rows.length} of ${plural(of, "trial")}`}
          </Text>
          <Button
            size="xs"
            variant="default"
            disabled={picked.length !== 2}
            onClick={() => navigate(`/compare?a=${picked[0]}&b=${picked[1]}`)}
          >
            Compare selected
          </Button>
        </Group>
      </Group>
      <DataTable label="Trials" columns={columns} rows={shown} rowId={(row) => row.record_id} />
      {rows.length > MOST && (
        <Group justify="center" pt="sm">
          <Button variant="default" size="xs" onClick={() => setMore(!more)}>
            {more ? "Show fewer" : `Show all ${rows.length}`}
          </Button>
        </Group>
      )}
    </div>
  );
}

/** At most two are selected: a third replaces the first. */
function toggled(picked: string[], id: string): string[] {
  return picked.includes(id) ? picked.filter((each) => each !== id) : [...picked, id].slice(-2);
}
