import { Text } from "@mantine/core";
import { Link } from "react-router";
import type { DeviceClass } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { formatTarget } from "../format/target";
import { formatCount, formatScaled } from "../format/units";

const columns: Columns<DeviceClass> = [
  {
    accessorKey: "name",
    header: "Device class",
    sortFn: "alphanumeric",
    cell: ({ row: { original: found } }) => (
      <>
        <span title={found.model}>{found.name}</span>
        <Text fz="xs" c="var(--muted)" ff="monospace" title={found.features.join(", ")}>
          {found.id}
        </Text>
      </>
    ),
  },
  {
    id: "target",
    accessorFn: (found) => formatTarget(found.target),
    header: "Target",
    cell: ({ row }) => (
      <span title={JSON.stringify(row.original.target)}>{formatTarget(row.original.target)}</span>
    ),
  },
  {
    accessorKey: "cores",
    header: "Cores, threads",
    meta: { numeric: true },
    cell: ({ row }) => `${formatCount(row.original.cores)}, ${formatCount(row.original.threads)}`,
  },
  {
    id: "flops",
    accessorFn: (found) => found.peaks?.flops,
    header: "Peak arithmetic",
    sortUndefined: "last",
    meta: { numeric: true },
    cell: ({ row: { original: found } }) => (
      <span title={found.peaks ? `of ${found.peaks.dtype}, measured` : "not measured yet"}>
        {formatScaled(found.peaks?.flops, "FLOP/s")}
      </span>
    ),
  },
  {
    id: "bandwidth",
    accessorFn: (found) => found.peaks?.bytes_per_s,
    header: "Peak memory",
    sortUndefined: "last",
    meta: { numeric: true },
    cell: ({ row }) => formatScaled(row.original.peaks?.bytes_per_s, "B/s"),
  },
  {
    accessorKey: "workers",
    header: "Workers alive",
    meta: { numeric: true },
    cell: ({ row }) => formatCount(row.original.workers),
  },
  {
    accessorKey: "bests",
    header: "Certified bests",
    meta: { numeric: true },
    cell: ({ row: { original: found } }) => (
      <Link to={`/bests?device_class=${encodeURIComponent(found.id)}`} className="link">
        {formatCount(found.bests)}
      </Link>
    ),
  },
];

export function DeviceClassTable({ classes }: { classes: DeviceClass[] }) {
  return (
    <DataTable
      label="Device classes"
      columns={columns}
      rows={classes}
      rowId={(found) => found.id}
      sortParam="classes"
    />
  );
}
