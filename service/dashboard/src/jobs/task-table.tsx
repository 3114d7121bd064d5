import { Button, Group, Text } from "@mantine/core";
import { useMemo } from "react";
import { Link } from "react-router";
import { isFinished, type Task } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { ShareBar } from "../components/share-bar";
import { Tag } from "../components/tag";
import { CertifiedTag, StateTag } from "../components/tags";
import { useQueryState } from "../components/use-query-state";
import { WorkloadName, workloadPath } from "../components/workload-name";
import { formatCount, formatLatency, formatShare, formatSpeedup, plural } from "../format/units";
import { commonError, foldTasks, shareOf } from "./folding";
import { failuresInWords } from "./summary";
import { libraryGain, libraryIsFaster } from "./verdict";

const ANSWERED_FROM: Record<string, { word: string; hint: string }> = {
  search: { word: "search", hint: "Found by this job's own trials." },
  database: { word: "database", hint: "Known from earlier jobs; no trial was needed." },
  joined: {
    word: "another job",
    hint: "Another job was already tuning this function; this job uses its result.",
  },
};

const FIRST_CHOICE = {
  word: "first choice",
  hint: "The first choice of the rules, without a search: the function hardly matters, or the budget did not reach it.",
};

function TaskName({ task, common }: { task: Task; common: string | null }) {
  return (
    <>
      <WorkloadName
        name={task.name}
        source={task.source}
        hash={task.workload_hash}
        to={workloadPath(task.workload_hash)}
      />
      {task.error && task.error !== common && (
        <Text fz="xs" c="var(--bad-text)">
          {task.error}
        </Text>
      )}
    </>
  );
}

function BestLatency({ task }: { task: Task }) {
  const latency = formatLatency(task.best_us);
  return (
    <>
      {task.record_id === null ? (
        latency
      ) : (
        <Link to={`/records/${task.record_id}`} className="link">
          {latency}
        </Link>
      )}
      {libraryIsFaster(task) && (
        <Text fz="xs" c="var(--bad-text)" title={task.library?.name}>
          {`${task.library?.name.split(" ")[0]} is ${formatSpeedup(libraryGain(task))} faster`}
        </Text>
      )}
    </>
  );
}

function AnsweredFrom({ task }: { task: Task }) {
  const isFirstChoice = task.answered_from === "search" && task.trials === 1;
  const answer = isFirstChoice ? FIRST_CHOICE : task.answered_from && ANSWERED_FROM[task.answered_from];
  return answer ? (
    <Tag tone="neutral" hint={answer.hint}>
      {answer.word}
    </Tag>
  ) : (
    "–"
  );
}

function Failures({ task }: { task: Task }) {
  const words = failuresInWords(task.failures);
  return words ? <span style={{ fontSize: "0.8125rem" }}>{words}</span> : <span className="muted">none</span>;
}

const FAILURES: Columns<Task> = [
  { id: "failures", header: "Failures", cell: ({ row }) => <Failures task={row.original} /> },
];

const columnsOf = (common: string | null, hasFailures: boolean): Columns<Task> => [
  {
    accessorKey: "name",
    header: "Task",
    sortFn: "alphanumeric",
    cell: ({ row }) => <TaskName task={row.original} common={common} />,
  },
  { accessorKey: "state", header: "State", cell: ({ row }) => <StateTag state={row.original.state} /> },
  {
    accessorKey: "weight",
    header: "Weight",
    meta: { numeric: true },
    cell: ({ row }) => (
      <span title="Number of calls in one run of the model">{formatCount(row.original.weight)}</span>
    ),
  },
  {
    accessorFn: (task) => task.model_share ?? undefined,
    id: "model_share",
    header: "Share of time",
    sortUndefined: "last",
    meta: { numeric: true },
    cell: ({ row }) => <ShareBar share={row.original.model_share} />,
  },
  {
    accessorFn: (task) => task.budget_share ?? undefined,
    id: "budget_share",
    header: "Share of trials",
    sortUndefined: "last",
    meta: { numeric: true },
    cell: ({ row: { original: task } }) => (
      <>
        <ShareBar share={task.budget_share} />
        <Text fz="xs" c="var(--muted)">
          {plural(task.trials, "trial")}
        </Text>
      </>
    ),
  },
  {
    accessorFn: (task) => task.baseline_us ?? undefined,
    id: "baseline",
    header: "Baseline",
    sortUndefined: "last",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.baseline_us),
  },
  {
    accessorFn: (task) => task.best_us ?? undefined,
    id: "best",
    header: "Best",
    sortUndefined: "last",
    meta: { numeric: true },
    cell: ({ row }) => <BestLatency task={row.original} />,
  },
  {
    accessorFn: (task) => task.speedup ?? undefined,
    id: "speedup",
    header: "Speedup",
    sortUndefined: "last",
    meta: { numeric: true },
    cell: ({ row }) => <strong>{formatSpeedup(row.original.speedup, row.original.interval)}</strong>,
  },
  {
    accessorKey: "certified",
    header: "Certificate",
    cell: ({ row }) => (
      <CertifiedTag certified={row.original.certified} pending={!isFinished(row.original.state)} />
    ),
  },
  {
    accessorKey: "answered_from",
    header: "Answered from",
    cell: ({ row }) => <AnsweredFrom task={row.original} />,
  },
  ...(hasFailures ? FAILURES : []),
];

/** Tasks by their share of the model's time; those that hardly count are shown when asked for (`?all=tasks`). */
export function TaskTable({ tasks }: { tasks: Task[] }) {
  const [params, change] = useQueryState();
  const { shown, folded } = foldTasks(tasks);
  const all = params.get("all") === "tasks";
  const common = commonError(tasks);
  const hasFailures = tasks.some((task) => failuresInWords(task.failures) !== "");
  const columns = useMemo(() => columnsOf(common, hasFailures), [common, hasFailures]);
  return (
    <>
      {common && (
        <Text size="sm" px="md" pb="xs" c="var(--bad-text)">
          {`Of ${tasks.filter(({ error }) => error === common).length} tasks: ${common}.`}
        </Text>
      )}
      <DataTable
        label="Tasks"
        columns={columns}
        rows={all ? [...shown, ...folded] : shown}
        rowId={(task) => task.workload_hash}
        sortParam="tasks"
      />
      {folded.length > 0 && (
        <Group justify="center" p="sm">
          <Button
            variant="subtle"
            size="compact-sm"
            onClick={() => change({ all: all ? null : "tasks" }, true)}
          >
            {all ? "Hide" : "Show"} {plural(folded.length, "task")} that together take{" "}
            {formatShare(shareOf(folded))} of the model's time
          </Button>
        </Group>
      )}
    </>
  );
}
