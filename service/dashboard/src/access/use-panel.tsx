import type { Use } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { Empty } from "../components/empty";
import { Panel } from "../components/panel";
import { formatCount, formatScaled } from "../format/units";

interface Limit {
  name: string;
  used: number;
  allowed: number | null | undefined;
  format(value: number): string;
}

const limitColumns: Columns<Limit> = [
  { id: "name", header: "Limit", cell: ({ row }) => row.original.name },
  {
    id: "used",
    header: "In use",
    meta: { numeric: true },
    cell: ({ row: { original: limit } }) => limit.format(limit.used),
  },
  {
    id: "allowed",
    header: "Allowed",
    meta: { numeric: true },
    cell: ({ row: { original: limit } }) =>
      limit.allowed === null || limit.allowed === undefined ? "no limit" : limit.format(limit.allowed),
  },
];

const dayColumns: Columns<Use["today"]> = [
  { id: "day", header: "Day (UTC)", cell: ({ row }) => row.original.day },
  {
    id: "jobs",
    header: "Jobs",
    meta: { numeric: true },
    cell: ({ row }) => formatCount(row.original.jobs),
  },
  {
    id: "trials",
    header: "Trials",
    meta: { numeric: true },
    cell: ({ row }) => formatCount(row.original.trials),
  },
  {
    id: "seconds",
    header: "Device time",
    meta: { numeric: true },
    cell: ({ row }) => seconds(row.original.device_seconds),
  },
  {
    id: "bytes",
    header: "Modules",
    meta: { numeric: true },
    cell: ({ row }) => bytes(row.original.bytes),
  },
];

function bytes(value: number): string {
  return formatScaled(value, "B");
}

function seconds(value: number): string {
  return `${formatCount(Math.round(value))} s`;
}

function limitsOf({ quota, today, active_jobs, pending_trials }: Use): Limit[] {
  return [
    {
      name: "Queued and running jobs",
      used: active_jobs,
      allowed: quota.active_jobs,
      format: formatCount,
    },
    {
      name: "Trials today, including those that active jobs may still run",
      used: today.trials + pending_trials,
      allowed: quota.daily_trials,
      format: formatCount,
    },
    {
      name: "Device time today",
      used: today.device_seconds,
      allowed: quota.daily_device_seconds,
      format: seconds,
    },
    { name: "Modules and imports today", used: today.bytes, allowed: quota.daily_bytes, format: bytes },
  ];
}

/** Shows the user's limits and use. Days are those of UTC. */
export function UsePanel({ use }: { use: Use }) {
  return (
    <>
      <Panel title="Your limits">
        <DataTable
          label="Your limits"
          columns={limitColumns}
          rows={limitsOf(use)}
          rowId={(limit) => limit.name}
        />
      </Panel>
      <Panel title="Your use">
        {use.days.length > 0 ? (
          <DataTable label="Your use" columns={dayColumns} rows={use.days} rowId={(day) => day.day} />
        ) : (
          <Empty>You have not submitted anything yet.</Empty>
        )}
      </Panel>
    </>
  );
}
