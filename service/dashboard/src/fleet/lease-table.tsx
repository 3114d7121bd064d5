import { Link } from "react-router";
import type { Lease } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { useNow } from "../components/use-now";
import { formatAbsolute, formatElapsed } from "../format/time";
import { formatCount } from "../format/units";

const columns: Columns<Lease> = [
  {
    id: "job",
    accessorKey: "job_name",
    header: "Job",
    sortFn: "alphanumeric",
    cell: ({ row: { original: lease } }) => (
      <Link to={`/jobs/${lease.job_id}`} className="link">
        {lease.job_name || lease.job_id}
      </Link>
    ),
  },
  {
    accessorKey: "owner",
    header: "Controller",
    sortFn: "alphanumeric",
    cell: ({ row }) => row.original.owner,
  },
  {
    accessorKey: "device_class",
    header: "Device class",
    cell: ({ row }) => <code>{row.original.device_class}</code>,
  },
  {
    accessorKey: "attempts",
    header: "Attempts",
    meta: { numeric: true },
    cell: ({ row }) => formatCount(row.original.attempts),
  },
  {
    accessorKey: "expires_at",
    header: "Expires",
    meta: { numeric: true },
    cell: ({ row }) => <TimeLeft until={row.original.expires_at} />,
  },
];

function TimeLeft({ until }: { until: string }) {
  const end = new Date(until);
  const left = end.getTime() - useNow().getTime();
  return (
    <time dateTime={until} title={formatAbsolute(end)}>
      {left > 0 ? `in ${formatElapsed(left)}` : "now"}
    </time>
  );
}

export function LeaseTable({ leases }: { leases: Lease[] }) {
  return (
    <DataTable
      label="Leases"
      columns={columns}
      rows={leases}
      rowId={(lease) => lease.job_id}
      sortParam="leases"
    />
  );
}
