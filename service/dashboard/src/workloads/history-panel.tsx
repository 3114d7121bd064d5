import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { HistoryPoint } from "../api/types";
import { lazyChart } from "../charts/lazy-chart";
import { type Columns, DataTable } from "../components/data-table";
import { Empty } from "../components/empty";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { RelativeTime } from "../components/relative-time";
import { Tag } from "../components/tag";
import { formatTarget } from "../format/target";
import { formatLatency, formatShare, formatSpeedup, plural } from "../format/units";
import { historyQuery } from "./queries";

const HistoryChart = lazyChart("history", () => import("./history-chart"));
const HEIGHT = 260;

const columns: Columns<HistoryPoint> = [
  {
    id: "found",
    accessorKey: "created_at",
    header: "Certified",
    cell: ({ row }) => <RelativeTime time={row.original.created_at} />,
  },
  {
    id: "device",
    accessorKey: "device_model",
    header: "Device",
    cell: ({ row: { original: point } }) => `${formatTarget(point.target)}, ${point.device_model}`,
  },
  {
    id: "baseline",
    accessorKey: "baseline_us",
    header: "Baseline",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.baseline_us),
  },
  {
    id: "best",
    accessorKey: "best_us",
    header: "Best",
    meta: { numeric: true },
    cell: ({ row: { original: point } }) => (
      <Link to={`/records/${point.record_id}`} className="link">
        {formatLatency(point.best_us)}
      </Link>
    ),
  },
  {
    id: "spread",
    accessorKey: "spread",
    header: "IQR",
    meta: { numeric: true },
    cell: ({ row }) => formatShare(row.original.spread),
  },
  {
    id: "speedup",
    accessorKey: "speedup",
    header: "Speedup",
    meta: { numeric: true },
    cell: ({ row: { original: point } }) => (
      <>
        {formatSpeedup(point.speedup, point.interval)} {point.is_best && <Tag tone="good">best</Tag>}
      </>
    ),
  },
  {
    id: "job",
    header: "Job",
    enableSorting: false,
    cell: ({ row: { original: point } }) =>
      point.job_id === null ? (
        <span className="muted">imported</span>
      ) : (
        <Link to={`/jobs/${point.job_id}`} className="link">
          {point.job_name || point.job_id}
        </Link>
      ),
  },
];

/** The history of the workload's bests, over jobs and devices. */
export function HistoryPanel({ hash }: { hash: string }) {
  const query = useQuery(historyQuery(hash));
  return (
    <Panel title="History of bests">
      <Ready query={query}>
        {(points) =>
          points.length === 0 ? (
            <Empty>No schedule of this workload has been certified yet.</Empty>
          ) : (
            <>
              {points.length > 1 && (
                <div style={{ padding: "0 1rem 1rem" }}>
                  <HistoryChart
                    points={points}
                    height={HEIGHT}
                    summary={`${plural(points.length, "certificate")} over time, from ${formatLatency(points[0]?.best_us)} to ${formatLatency(points.at(-1)?.best_us)}.`}
                  />
                </div>
              )}
              <DataTable
                label="History of bests"
                columns={columns}
                rows={[...points].reverse()}
                rowId={(point) => `${point.record_id} ${point.created_at}`}
                sortParam="history"
              />
            </>
          )
        }
      </Ready>
    </Panel>
  );
}
