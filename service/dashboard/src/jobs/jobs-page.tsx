import { Group, Paper, Stack, Title } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { jobsQuery } from "../api/queries";
import { isFinished, type Job } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { ErrorNotice } from "../components/error-notice";
import { MoreButton } from "../components/more-button";
import { RelativeTime } from "../components/relative-time";
import { StateTag } from "../components/tags";
import { Waiting } from "../components/waiting";
import { formatTarget } from "../format/target";
import { formatSpeedup } from "../format/units";
import { FirstJob } from "./first-job";
import { FleetLine } from "./fleet-line";
import { JobProgress } from "./job-progress";
import { bestSpeedup } from "./summary";

const columns: Columns<Job> = [
  {
    id: "name",
    header: "Job",
    cell: ({ row: { original: job } }) => (
      <Link to={`/jobs/${job.id}`} className="link">
        {job.name || job.id}
      </Link>
    ),
  },
  { id: "state", header: "State", cell: ({ row }) => <StateTag state={row.original.state} /> },
  { id: "target", header: "Target", cell: ({ row }) => formatTarget(row.original.target) },
  {
    id: "progress",
    header: "Trials",
    cell: ({ row: { original: job } }) => (
      <JobProgress progress={job.progress} active={!isFinished(job.state)} compact />
    ),
  },
  {
    id: "speedup",
    header: "Best speedup",
    meta: { numeric: true },
    cell: ({ row }) => formatSpeedup(bestSpeedup(row.original)),
  },
  {
    id: "created",
    header: "Created",
    meta: { numeric: true },
    cell: ({ row }) => <RelativeTime time={row.original.created_at} />,
  },
];

export function JobsPage() {
  const pages = useInfiniteQuery(jobsQuery);
  const jobs = pages.data?.pages.flatMap((page) => page.items);
  return (
    <Stack gap="md">
      <title>Jobs · Loopwright</title>
      <Group justify="space-between" align="baseline">
        <Title order={1}>Jobs</Title>
        <FleetLine />
      </Group>
      {pages.error && <ErrorNotice error={pages.error} onRetry={() => pages.refetch()} />}
      {jobs === undefined && !pages.error && <Waiting />}
      {jobs?.length === 0 && <FirstJob />}
      {jobs !== undefined && jobs.length > 0 && (
        <Paper withBorder bg="var(--surface)">
          <DataTable label="Jobs" columns={columns} rows={jobs} rowId={(job) => job.id} />
          <MoreButton pages={pages} />
        </Paper>
      )}
    </Stack>
  );
}
