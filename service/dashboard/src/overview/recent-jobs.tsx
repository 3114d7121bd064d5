import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Job } from "../api/types";
import { DataTable } from "../components/data-table";
import { Empty } from "../components/empty";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { jobColumns } from "../jobs/columns";
import { jobsQuery } from "../jobs/queries";

const MOST = 5;
const SHOWN = new Set(["name", "state", "progress", "speedup", "created"]);
const columns = jobColumns.filter(({ id }) => id !== undefined && SHOWN.has(id));

/** Running jobs, or if there are none, the latest jobs. */
export function RecentJobs() {
  const query = useInfiniteQuery(jobsQuery());
  return (
    <Panel
      title="Jobs"
      aside={
        <Link to="/jobs" className="link">
          All jobs
        </Link>
      }
    >
      <Ready query={query}>
        {({ pages }) => {
          const jobs = runningFirst(pages.flatMap((page) => page.items)).slice(0, MOST);
          if (jobs.length === 0) return <Empty>No job has been submitted yet.</Empty>;
          return <DataTable label="Jobs" columns={columns} rows={jobs} rowId={(job) => job.id} />;
        }}
      </Ready>
    </Panel>
  );
}

const ORDER: Record<Job["state"], number> = {
  running: 0,
  queued: 1,
  succeeded: 2,
  partly: 2,
  failed: 2,
  cancelled: 2,
};

function runningFirst(jobs: Job[]): Job[] {
  return [...jobs].sort((a, b) => ORDER[a.state] - ORDER[b.state]);
}
