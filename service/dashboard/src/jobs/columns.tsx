import { Link } from "react-router";
import { isFinished, type Job } from "../api/types";
import type { Columns } from "../components/data-table";
import { RelativeTime } from "../components/relative-time";
import { PrivateTag, StateTag } from "../components/tags";
import { formatTarget } from "../format/target";
import { formatSpeedup } from "../format/units";
import { JobProgress } from "./job-progress";
import { JobTag } from "./job-tag";

export const jobColumns: Columns<Job> = [
  {
    id: "name",
    header: "Job",
    cell: ({ row: { original: job } }) => (
      <>
        <Link to={`/jobs/${job.id}`} className="link" style={{ overflowWrap: "anywhere" }}>
          {job.name || job.id}
        </Link>{" "}
        {job.visibility === "private" && <PrivateTag />}
        {(job.tags ?? []).map((tag) => (
          <JobTag key={tag} tag={tag} />
        ))}
      </>
    ),
  },
  { id: "owner", header: "Owner", cell: ({ row }) => row.original.owner },
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
    header: "Speedup",
    meta: { numeric: true },
    cell: ({ row }) => formatSpeedup(row.original.model?.speedup, row.original.model?.interval),
  },
  {
    id: "created",
    header: "Created",
    meta: { numeric: true },
    cell: ({ row }) => <RelativeTime time={row.original.created_at} />,
  },
];
