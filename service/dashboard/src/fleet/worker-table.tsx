import { Text } from "@mantine/core";
import { Link } from "react-router";
import type { Worker } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { RelativeTime } from "../components/relative-time";
import { SandboxTag } from "../components/sandbox-tag";
import { ShareBar } from "../components/share-bar";
import { formatTarget } from "../format/target";
import { plural } from "../format/units";
import { DrainButton } from "./drain-button";
import { DriftLine } from "./drift-line";
import { WorkerState } from "./worker-state";

const columns: Columns<Worker> = [
  {
    accessorKey: "id",
    header: "Worker",
    sortFn: "alphanumeric",
    cell: ({ row: { original: worker } }) => (
      <>
        {worker.id}
        <Text fz="xs" c="var(--muted)">
          {`${worker.device_model}, ${plural(worker.threads, "thread")}`}
        </Text>
        {labelsInWords(worker.labels) && (
          <Text fz="xs" c="var(--muted)" ff="monospace">
            {labelsInWords(worker.labels)}
          </Text>
        )}
      </>
    ),
  },
  {
    id: "state",
    accessorFn: (worker) => `${worker.alive} ${worker.slot === null}`,
    header: "State",
    cell: ({ row }) => <WorkerState worker={row.original} />,
  },
  {
    id: "sandbox",
    accessorFn: (worker) => worker.sandbox ?? undefined,
    header: "Sandbox",
    sortUndefined: "last",
    cell: ({ row }) => <SandboxTag level={row.original.sandbox} />,
  },
  {
    id: "target",
    accessorFn: (worker) => formatTarget(worker.target),
    header: "Target",
    cell: ({ row: { original: worker } }) => (
      <>
        {formatTarget(worker.target)}
        <Text fz="xs" c="var(--muted)" ff="monospace">
          {worker.device_class}
        </Text>
      </>
    ),
  },
  {
    accessorKey: "builders_busy",
    header: "Builders",
    meta: { numeric: true },
    cell: ({ row: { original: worker } }) => `${worker.builders_busy} of ${worker.builders} busy`,
  },
  { id: "slot", header: "Slot", enableSorting: false, cell: ({ row }) => <SlotWork worker={row.original} /> },
  {
    id: "use",
    accessorFn: (worker) => worker.slot_use ?? undefined,
    header: "Slot use",
    sortUndefined: "last",
    meta: { numeric: true },
    cell: ({ row }) => <ShareBar share={row.original.slot_use} />,
  },
  {
    id: "drift",
    accessorFn: (worker) => worker.drift?.ratio,
    header: "Drift",
    sortUndefined: "last",
    cell: ({ row }) => <DriftLine drift={row.original.drift} />,
  },
  {
    id: "seen",
    accessorKey: "last_seen_at",
    header: "Heartbeat",
    meta: { numeric: true },
    cell: ({ row }) => <RelativeTime time={row.original.last_seen_at} />,
  },
  {
    id: "drain",
    header: "Action",
    enableSorting: false,
    cell: ({ row }) => <DrainButton worker={row.original} />,
  },
];

function labelsInWords(labels: Worker["labels"]): string {
  return Object.entries(labels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(", ");
}

function SlotWork({ worker: { slot } }: { worker: Worker }) {
  if (slot === null) return <span className="muted">idle</span>;
  return (
    <>
      {slot.job_id === null ? (
        "device check"
      ) : (
        <Link to={`/jobs/${slot.job_id}`} className="link">
          {slot.trial_id === null ? "closing race" : `trial ${slot.trial_id.slice(0, 8)}`}
        </Link>
      )}
      <Text fz="xs" c="var(--muted)">
        begun <RelativeTime time={slot.since} />
      </Text>
    </>
  );
}

export function WorkerTable({ workers }: { workers: Worker[] }) {
  return (
    <DataTable
      label="Workers"
      columns={columns}
      rows={workers}
      rowId={(worker) => worker.id}
      sortParam="workers"
    />
  );
}
