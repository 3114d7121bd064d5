import { Paper, Stack, Text, Title } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { bestsQuery } from "../api/queries";
import type { Best } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { ErrorNotice } from "../components/error-notice";
import { MoreButton } from "../components/more-button";
import { RelativeTime } from "../components/relative-time";
import { Tag } from "../components/tag";
import { CertifiedTag } from "../components/tags";
import { Waiting } from "../components/waiting";
import { formatTarget } from "../format/target";
import { formatLatency, formatSpeedup } from "../format/units";

const columns: Columns<Best> = [
  {
    id: "name",
    header: "Workload",
    cell: ({ row: { original: best } }) => (
      <>
        <Link to={`/records/${best.record_id}`} className="link">
          {best.name}
        </Link>
        <Text ff="monospace" fz="xs" c="var(--muted)" title={best.workload_hash}>
          {best.workload_hash.slice(0, 12)}
        </Text>
      </>
    ),
  },
  {
    id: "target",
    header: "Target",
    cell: ({ row: { original: best } }) => (
      <span title={`device class ${best.device_class}`}>{formatTarget(best.target)}</span>
    ),
  },
  {
    id: "baseline",
    header: "Baseline",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.baseline_us),
  },
  {
    id: "best",
    header: "Best",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.best_us),
  },
  {
    id: "speedup",
    header: "Speedup",
    meta: { numeric: true },
    cell: ({ row: { original: best } }) =>
      best.is_baseline ? (
        <Tag
          tone="neutral"
          hint="Nothing that was tried beat the unscheduled program, so that is what is kept."
        >
          baseline is best
        </Tag>
      ) : (
        <strong>{formatSpeedup(best.speedup)}</strong>
      ),
  },
  // Only certified schedules are bests.
  { id: "certificate", header: "Certificate", cell: () => <CertifiedTag certified /> },
  {
    id: "created",
    header: "Found",
    meta: { numeric: true },
    cell: ({ row }) => <RelativeTime time={row.original.created_at} />,
  },
];

export function BestsPage() {
  const pages = useInfiniteQuery(bestsQuery);
  const bests = pages.data?.pages.flatMap((page) => page.items);
  return (
    <Stack gap="md">
      <title>Best schedules · Loopwright</title>
      <div>
        <Title order={1}>Best schedules</Title>
        <Text c="var(--muted)" size="sm" mt={4}>
          The fastest certified schedule of each workload on each device class.
        </Text>
      </div>
      {pages.error && <ErrorNotice error={pages.error} onRetry={() => pages.refetch()} />}
      {bests === undefined && !pages.error && <Waiting />}
      {bests?.length === 0 && (
        <Paper withBorder p="lg" bg="var(--surface)">
          <Text>No schedule has been certified yet. The first job that succeeds brings the first ones.</Text>
        </Paper>
      )}
      {bests !== undefined && bests.length > 0 && (
        <Paper withBorder bg="var(--surface)">
          <DataTable
            label="Best schedules"
            columns={columns}
            rows={bests}
            rowId={(best) => `${best.workload_hash} ${best.device_class} ${best.record_id}`}
          />
          <MoreButton pages={pages} />
        </Paper>
      )}
    </Stack>
  );
}
