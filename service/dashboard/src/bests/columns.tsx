import { Text } from "@mantine/core";
import { Link } from "react-router";
import type { BestSchedule } from "../api/types";
import type { Columns } from "../components/data-table";
import { RelativeTime } from "../components/relative-time";
import { ShareBar } from "../components/share-bar";
import { Tag } from "../components/tag";
import { CertifiedTag, RegressedTag } from "../components/tags";
import { WorkloadName, workloadPath } from "../components/workload-name";
import { formatTarget } from "../format/target";
import { formatTensors } from "../format/tensor";
import { formatLatency, formatShare, formatSpeedup } from "../format/units";

/** Two lines, each cut at the column's end; the full text is shown on hover. */
function TwoLines({ first, second }: { first: string; second: string }) {
  return (
    <div title={`${first}\n${second}`}>
      <Text fz="inherit" truncate>
        {first}
      </Text>
      <Text fz="xs" c="var(--muted)" truncate>
        {second}
      </Text>
    </div>
  );
}

/** The columns of the list of best schedules. Ids are the service's sort keys. */
export const columns: Columns<BestSchedule> = [
  {
    id: "name",
    accessorKey: "name",
    header: "Workload",
    meta: { width: "minmax(12rem, 2fr)" },
    cell: ({ row: { original: best } }) => (
      <WorkloadName
        name={best.name}
        source={best.source}
        hash={best.workload_hash}
        to={workloadPath(best.workload_hash, best.device_class)}
      />
    ),
  },
  {
    id: "op",
    accessorKey: "op",
    header: "Op",
    meta: { width: "minmax(7.5rem, 0.8fr)" },
    cell: ({ row }) => <span title={row.original.op}>{row.original.op}</span>,
  },
  {
    id: "shapes",
    header: "Shapes",
    enableSorting: false,
    meta: { width: "minmax(9rem, 1.3fr)" },
    cell: ({ row }) => {
      const text = formatTensors(row.original.args);
      const cut = text.lastIndexOf(" ");
      return <TwoLines first={text.slice(0, cut)} second={text.slice(cut + 1)} />;
    },
  },
  {
    id: "device",
    header: "Device",
    enableSorting: false,
    meta: { width: "minmax(9rem, 1.2fr)" },
    cell: ({ row: { original: best } }) => (
      <TwoLines first={formatTarget(best.target)} second={best.device_model} />
    ),
  },
  {
    id: "baseline",
    accessorKey: "baseline_us",
    header: "Baseline",
    meta: { numeric: true, width: "5.25rem" },
    cell: ({ row }) => formatLatency(row.original.baseline_us),
  },
  {
    id: "best",
    accessorKey: "best_us",
    header: "Best",
    meta: { numeric: true, width: "5.5rem" },
    cell: ({ row: { original: best } }) => (
      <>
        <Link to={`/records/${best.record_id}`} className="link">
          {formatLatency(best.best_us)}
        </Link>
        <Text
          fz="xs"
          c="var(--muted)"
          title="Interquartile range of the closing race's samples, divided by their median"
        >
          IQR {formatShare(best.spread)}
        </Text>
      </>
    ),
  },
  {
    id: "speedup",
    accessorKey: "speedup",
    sortDescFirst: true,
    header: "Speedup",
    meta: { numeric: true, width: "5.5rem" },
    cell: ({ row: { original: best } }) =>
      best.is_baseline ? (
        <Tag
          tone="neutral"
          hint="No trial was faster than the unscheduled program, so the unscheduled program is the best."
        >
          baseline
        </Tag>
      ) : (
        <strong>{formatSpeedup(best.speedup, best.interval)}</strong>
      ),
  },
  {
    id: "peak",
    accessorKey: "peak_share",
    sortDescFirst: true,
    header: "Of peak",
    meta: { numeric: true, width: "6.75rem" },
    cell: ({ row }) => <ShareBar share={row.original.peak_share} />,
  },
  {
    id: "created",
    accessorKey: "created_at",
    sortDescFirst: true,
    header: "Certified",
    meta: { width: "7.5rem" },
    // Only certified schedules are bests.
    cell: ({ row }) => (
      <>
        {row.original.regressed ? <RegressedTag /> : <CertifiedTag certified />}
        <Text fz="xs" c="var(--muted)">
          <RelativeTime time={row.original.created_at} />
        </Text>
      </>
    ),
  },
  {
    id: "job",
    header: "Job",
    enableSorting: false,
    meta: { width: "minmax(6rem, 0.8fr)" },
    cell: ({ row: { original: best } }) =>
      best.job_id === null ? (
        <span className="muted">imported</span>
      ) : (
        <Link to={`/jobs/${best.job_id}`} className="link" title={best.job_name ?? undefined}>
          {best.job_name || best.job_id}
        </Link>
      ),
  },
];
