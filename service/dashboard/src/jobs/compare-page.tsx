import { Group, NativeSelect, Stack, Text } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Job } from "../api/types";
import { Breakable } from "../components/breakable";
import { type Columns, DataTable } from "../components/data-table";
import { Notice } from "../components/notice";
import { PairHead } from "../components/pair-head";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { StateTag } from "../components/tags";
import { useQueryState } from "../components/use-query-state";
import { formatTarget } from "../format/target";
import { formatAbsolute } from "../format/time";
import { formatLatency, formatSpeedup } from "../format/units";
import { comparable, type JobFact, jobDiff, jobFacts, type TaskPair } from "./job-diff";
import { jobQuery, jobsQuery } from "./queries";
import { budgetInWords } from "./summary";

const REFRESH_MS = 10_000;

/** Two jobs side by side. Which two is in the address (`?a=&b=`). */
export default function CompareJobsPage() {
  const [params, change] = useQueryState();
  const a = params.get("a") ?? "";
  const b = params.get("b") ?? "";
  return (
    <Stack gap="md">
      <PairHead title="Compare two jobs" up={{ to: "/jobs", label: "Jobs" }} a={a} b={b} onChange={change} />
      <Choose a={a} b={b} />
      {a !== "" && b !== "" && <Both key={`${a} ${b}`} a={a} b={b} />}
    </Stack>
  );
}

function Choose({ a, b }: { a: string; b: string }) {
  const [, change] = useQueryState();
  const { data } = useInfiniteQuery(jobsQuery());
  const jobs = data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <Group gap="md" grow preventGrowOverflow={false}>
      <JobSelect label="Left" value={a} jobs={jobs} onChange={(id) => change({ a: id }, true)} />
      <JobSelect label="Right" value={b} jobs={jobs} onChange={(id) => change({ b: id }, true)} />
    </Group>
  );
}

interface JobSelectProps {
  label: string;
  value: string;
  jobs: Job[];
  onChange(id: string): void;
}

/** One of the newest jobs, or the one of the address, which may be older. */
function JobSelect({ label, value, jobs, onChange }: JobSelectProps) {
  const listed = jobs.map((job) => ({
    value: job.id,
    label: `${job.name}, ${formatAbsolute(new Date(job.created_at))}`,
  }));
  const known = value === "" || jobs.some(({ id }) => id === value);
  return (
    <NativeSelect
      label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      data={[{ value: "", label: "Choose a job" }, ...(known ? [] : [{ value, label: value }]), ...listed]}
    />
  );
}

function Both({ a, b }: { a: string; b: string }) {
  const left = useQuery(jobQuery(a, REFRESH_MS));
  const right = useQuery(jobQuery(b, REFRESH_MS));
  return (
    <Ready query={left} what="job">
      {(one) => (
        <Ready query={right} what="job">
          {(other) => <Comparison left={one} right={other} />}
        </Ready>
      )}
    </Ready>
  );
}

function Comparison({ left, right }: { left: Job; right: Job }) {
  const facts = jobFacts(FACTS, left, right);
  return (
    <>
      {!comparable(left, right) && (
        <Notice tone="warn" title="The jobs are for different device classes">
          Their timings cannot be compared.
        </Notice>
      )}
      <Panel title="Functions">
        <DataTable
          label="Functions"
          columns={taskColumns}
          rows={jobDiff(left, right)}
          rowId={(pair) => pair.hash}
          sortParam="functions"
        />
      </Panel>
      <Panel title="What differs">
        <DataTable
          label="What differs"
          columns={factColumns(left, right)}
          rows={facts.different}
          rowId={({ label }) => label}
        />
        {facts.same.length > 0 && (
          <Text size="sm" c="var(--muted)" px="md" py="sm">
            {`The same in both: ${facts.same.map(({ label, left: value }) => `${label.toLowerCase()} (${value})`).join(", ")}.`}
          </Text>
        )}
      </Panel>
    </>
  );
}

/** What is compared, as text; what is the same in both is told in one line. */
const FACTS: Record<string, (job: Job) => string> = {
  "One run of the model": ({ model }) => formatLatency(model?.latency_us),
  Speedup: ({ model }) => formatSpeedup(model?.speedup, model?.interval),
  State: ({ state }) => state,
  Trials: ({ progress }) => String(progress.trials),
  Failed: ({ progress }) => String(progress.failed),
  Target: ({ target }) => formatTarget(target),
  "Device class": (job) => job.device_class,
  Budget: (job) => budgetInWords(job.budget),
  Seed: ({ seed }) => String(seed),
  Owner: ({ owner }) => owner,
  Tags: ({ tags = [] }) => tags.join(", ") || "none",
};

const factColumns = (left: Job, right: Job): Columns<JobFact> => [
  { id: "label", header: "Fact", cell: ({ row }) => <span className="muted">{row.original.label}</span> },
  { id: "left", header: () => <JobHead job={left} />, cell: ({ row }) => row.original.left },
  { id: "right", header: () => <JobHead job={right} />, cell: ({ row }) => row.original.right },
];

function JobHead({ job }: { job: Job }) {
  return (
    <Link to={`/jobs/${job.id}`} className="link">
      {job.name || job.id}
    </Link>
  );
}

const taskColumns: Columns<TaskPair> = [
  {
    accessorKey: "name",
    header: "Task",
    sortFn: "alphanumeric",
    cell: ({ row: { original: pair } }) => (
      <Link to={`/workloads/${pair.hash}`} className="link">
        <Breakable name={pair.name} />
      </Link>
    ),
  },
  {
    accessorFn: ({ left }) => left?.best_us ?? undefined,
    id: "left",
    header: "Left",
    sortUndefined: "last",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.left?.best_us),
  },
  {
    accessorFn: ({ right }) => right?.best_us ?? undefined,
    id: "right",
    header: "Right",
    sortUndefined: "last",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.right?.best_us),
  },
  {
    accessorFn: ({ ratio }) => ratio ?? undefined,
    id: "ratio",
    header: "Left / right",
    sortUndefined: "last",
    meta: { numeric: true },
    cell: ({ row }) => <strong>{formatSpeedup(row.original.ratio)}</strong>,
  },
  {
    id: "states",
    header: "States",
    enableSorting: false,
    cell: ({ row: { original: pair } }) => (
      <Group gap={4}>
        {pair.left ? <StateTag state={pair.left.state} /> : "–"}
        {pair.right ? <StateTag state={pair.right.state} /> : "–"}
      </Group>
    ),
  },
];
