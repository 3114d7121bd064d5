import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { isFinished, type Job } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { Panel } from "../components/panel";
import { CertifiedTag, StateTag } from "../components/tags";
import { formatTargets } from "../format/target";
import { formatLatency, formatSpeedup } from "../format/units";
import { JobProgress } from "./job-progress";
import { untunedOf } from "./model-figures";
import { groupQuery } from "./queries";

interface Row {
  job: Job;
  target: string;
  /** Whether the page shows this job. */
  here: boolean;
}

const columns: Columns<Row> = [
  {
    id: "target",
    header: "Target",
    cell: ({ row: { original: each } }) =>
      each.here ? (
        <span aria-current="page">{each.target} (this job)</span>
      ) : (
        <Link to={`/jobs/${each.job.id}`} className="link" title={JSON.stringify(each.job.target)}>
          {each.target}
        </Link>
      ),
  },
  { id: "state", header: "State", cell: ({ row }) => <StateTag state={row.original.job.state} /> },
  {
    id: "progress",
    header: "Trials",
    cell: ({ row: { original: each } }) => (
      <JobProgress progress={each.job.progress} active={!isFinished(each.job.state)} compact />
    ),
  },
  {
    id: "baseline",
    header: "Baseline",
    meta: { numeric: true },
    cell: ({ row: { original: each } }) => formatLatency(each.job.model && untunedOf(each.job.model)),
  },
  {
    id: "best",
    header: "Best",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.job.model?.latency_us ?? null),
  },
  {
    id: "speedup",
    header: "Speedup",
    meta: { numeric: true },
    cell: ({ row }) => formatSpeedup(row.original.job.model?.speedup, row.original.job.model?.interval),
  },
  {
    id: "certified",
    header: "Certificate",
    cell: ({ row: { original: each } }) => (
      <CertifiedTag
        certified={each.job.tasks.length > 0 && each.job.tasks.every((task) => task.certified)}
        pending={!isFinished(each.job.state) || each.job.tasks.length === 0}
      />
    ),
  },
];

/** The jobs for the targets of one submission, this one among them; nothing for a job of its own. */
export function TargetPanel({ job }: { job: Job }) {
  return job.group ? <Targets job={job} group={job.group} /> : null;
}

function Targets({ job, group }: { job: Job; group: string }) {
  const { data } = useQuery(groupQuery(group));
  if (!data) return null;
  // Of this job the page knows more than the list, which is asked for now and then.
  const jobs = data.items.map((each) => (each.id === job.id ? job : each));
  const targets = formatTargets(jobs.map((each) => each.target));
  const rows = jobs.map((each, place) => ({
    job: each,
    target: targets[place] ?? "",
    here: each.id === job.id,
  }));
  return (
    <Panel title="Targets" aside={<span className="muted">latencies are of one run of the model</span>}>
      <DataTable label="Targets" columns={columns} rows={rows} rowId={(each) => each.job.id} />
    </Panel>
  );
}
