import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Coverage, Job, Trial } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { Empty } from "../components/empty";
import { Ready } from "../components/ready";
import { ShareBar } from "../components/share-bar";
import { useQueryState } from "../components/use-query-state";
import { formatCount, plural } from "../format/units";
import { decisionsQuery } from "../workloads/queries";
import { TaskSelect } from "./calibration";
import { chosenTask } from "./summary";

const columns: Columns<Coverage> = [
  { accessorKey: "name", header: "Decision", sortFn: "alphanumeric" },
  {
    id: "tried",
    accessorFn: ({ tried, possible }) => tried / possible,
    header: "Values tried",
    meta: { numeric: true },
    cell: ({ row: { original: each } }) => `${formatCount(each.tried)} of ${formatCount(each.possible)}`,
  },
  {
    id: "share",
    header: "Share",
    enableSorting: false,
    meta: { numeric: true },
    cell: ({ row: { original: each } }) => <ShareBar share={each.tried / each.possible} />,
  },
];

/** What the search has tried of a task's design space: where its candidates came from, and the values of decisions. */
export function SpaceCoverage({ job, trials }: { job: Job; trials: Trial[] }) {
  const [params] = useQueryState();
  const task = chosenTask(job, params.get("task"));
  if (task === undefined) return <Empty>The job has no task.</Empty>;
  const own = trials.filter((trial) => trial.workload_hash === task.workload_hash && trial.number > 0);
  return (
    <Stack gap="xs" px="md" pb="md">
      <TaskSelect job={job} />
      <Text size="sm" c="var(--muted)">
        {originsInWords(own)} Below: of each decision of the space, the values that occur in the measured
        trials of the function on this kind of machine, those of other jobs included. Rules may exclude some
        values.
      </Text>
      <Decisions hash={task.workload_hash} deviceClass={job.device_class} />
    </Stack>
  );
}

function Decisions({ hash, deviceClass }: { hash: string; deviceClass: string }) {
  const query = useQuery(decisionsQuery(hash, deviceClass));
  return (
    <Ready query={query}>
      {({ coverage = [] }) =>
        coverage.length === 0 ? (
          <Empty>No measured trial samples a decision.</Empty>
        ) : (
          <DataTable
            label="Coverage"
            columns={columns}
            rows={coverage}
            rowId={(each) => each.name}
            sortParam="coverage"
          />
        )
      }
    </Ready>
  );
}

/** Where the candidates of a task came from: "24 trials of this job: 16 mutation, 8 seed." */
export function originsInWords(trials: readonly Pick<Trial, "origin">[]): string {
  const counts = new Map<string, number>();
  for (const { origin } of trials) counts.set(origin, (counts.get(origin) ?? 0) + 1);
  const words = [...counts].sort(([, a], [, b]) => b - a).map(([origin, count]) => `${count} ${origin}`);
  return words.length === 0
    ? "This job has no trial of the function."
    : `${plural(trials.length, "trial")} of this job: ${words.join(", ")}.`;
}
