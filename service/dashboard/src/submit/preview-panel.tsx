import { Button, Group, List, Stack, Text } from "@mantine/core";
import { Link } from "react-router";
import type { Preview, PreviewTask } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { Empty } from "../components/empty";
import { Panel } from "../components/panel";
import { Tag } from "../components/tag";
import { WorkloadName, workloadPath } from "../components/workload-name";
import { formatTarget } from "../format/target";
import { formatTensors } from "../format/tensor";
import { formatCount, formatLatency, formatScaled, formatSpeedup, plural } from "../format/units";

const columns: Columns<PreviewTask> = [
  {
    id: "name",
    header: "Task",
    cell: ({ row: { original: task } }) => (
      <WorkloadName
        name={task.name}
        source={task.source}
        hash={task.workload_hash}
        to={task.best ? workloadPath(task.workload_hash) : undefined}
      />
    ),
  },
  {
    id: "op",
    header: "Op",
    cell: ({ row: { original: task } }) => (task.math === "tf32" ? `${task.op}, TF32 permitted` : task.op),
  },
  { id: "args", header: "Arguments", cell: ({ row }) => formatTensors(row.original.args) },
  {
    id: "weight",
    header: "Weight",
    meta: { numeric: true },
    cell: ({ row }) => (
      <span title="Number of calls in one run of the model">{formatCount(row.original.weight)}</span>
    ),
  },
  {
    id: "flop",
    header: "Work",
    meta: { numeric: true },
    cell: ({ row }) => formatScaled(row.original.flop, "FLOP"),
  },
  {
    id: "best",
    header: "Known best",
    meta: { numeric: true },
    cell: ({ row: { original: task } }) =>
      task.best ? (
        <Link to={`/records/${task.best.record_id}`} className="link">
          {`${formatLatency(task.best.best_us)}, ${formatSpeedup(task.best.speedup, task.best.certificate.interval)}`}
        </Link>
      ) : (
        "–"
      ),
  },
  {
    id: "answered",
    header: "What happens",
    cell: ({ row }) =>
      row.original.answered ? (
        <Tag
          tone="good"
          hint="The database already contains a good schedule, so no trial is spent on this task."
        >
          answered at once
        </Tag>
      ) : (
        <Tag tone="active">searched</Tag>
      ),
  },
];

interface PreviewPanelProps {
  preview: Preview;
  /** Targets of the submission; the preview is of the first. */
  targets: number;
  trials: number;
  onTrials(trials: number): void;
}

/** The tasks of a submission, and whether its trials are enough. */
export function PreviewPanel({ preview, targets, trials, onTrials }: PreviewPanelProps) {
  const searched = preview.tasks.filter((task) => !task.answered).length;
  return (
    <Panel title="What will be tuned">
      <Text size="sm" px="md" pb="sm">
        {`${plural(preview.tasks.length, "task")}, ${formatCount(searched)} to be searched, on ${preview.device_model} (${formatTarget(preview.target)})${targets > 1 ? `, the first of ${targets} targets` : ""}.`}
      </Text>
      {trials < preview.suggested_trials && (
        <Group gap="sm" px="md" pb="sm">
          <Text size="sm">
            {`${plural(trials, "trial")} for ${plural(preview.tasks.length, "function")}: ${formatCount(preview.suggested_trials)} trials are suggested for this model.`}
          </Text>
          <Button size="xs" variant="default" onClick={() => onTrials(preview.suggested_trials)}>
            {`Use ${formatCount(preview.suggested_trials)}`}
          </Button>
        </Group>
      )}
      {preview.tasks.length === 0 ? (
        <Empty>This module contains no function that can be tuned.</Empty>
      ) : (
        <DataTable
          label="What will be tuned"
          columns={columns}
          rows={preview.tasks}
          rowId={(task) => task.workload_hash}
        />
      )}
      <Stack gap="xs" px="md" py="sm">
        <Lines title="Not tuned" lines={preview.left_alone} />
        <Lines title="Notes" lines={preview.notes} />
      </Stack>
    </Panel>
  );
}

function Lines({ title, lines }: { title: string; lines: string[] }) {
  if (lines.length === 0) return null;
  return (
    <div>
      <Text size="sm" c="var(--muted)">
        {title}
      </Text>
      <List size="sm">
        {lines.map((line) => (
          <List.Item key={line}>{line}</List.Item>
        ))}
      </List>
    </div>
  );
}
