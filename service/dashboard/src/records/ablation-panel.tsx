import { Button, Group, Loader, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { type Ablation, isFinished, type RecordDetail } from "../api/types";
import { useMay } from "../auth/queries";
import { type Columns, DataTable } from "../components/data-table";
import { ErrorNotice } from "../components/error-notice";
import { Notice } from "../components/notice";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { formatLatency } from "../format/units";
import { type DecisionEffect, effectsOf, effectWords } from "./ablation";
import { ablationQuery, useAblate } from "./queries";
import { hasDecisions } from "./trace";

/** Which decisions of the schedule make it fast: its races with neighbours, which are run on request. */
export function AblationPanel({ record }: { record: RecordDetail }) {
  const query = useQuery(ablationQuery(record.id));
  const maySubmit = useMay("submit");
  const start = useAblate(record.id);
  const running = query.data != null && !isFinished(query.data.state);
  if (!hasDecisions(record.trace)) {
    return (
      <Panel title="What each decision brings">
        <Text size="sm" c="var(--muted)" px="md" pb="md">
          This schedule makes no decisions, so there is nothing to replace in it.
        </Text>
      </Panel>
    );
  }
  return (
    <Panel
      title="What each decision brings"
      aside={
        maySubmit &&
        !running && (
          <Button size="xs" variant="default" loading={start.isPending} onClick={() => start.mutate()}>
            {query.data?.result ? "Measure again" : "Measure"}
          </Button>
        )
      }
    >
      <Stack gap="sm" pb="md">
        {start.error && <ErrorNotice error={start.error} />}
        <Ready query={query}>{(ablation) => <State ablation={ablation} />}</Ready>
      </Stack>
    </Panel>
  );
}

function State({ ablation }: { ablation: Ablation | null }) {
  if (ablation === null) {
    return (
      <Text size="sm" c="var(--muted)" px="md" maw="60rem">
        A job can race this schedule with its neighbours: programs that differ from it in one decision, such
        as the factors of a tile. That takes about a minute.
      </Text>
    );
  }
  const job = (
    <Link to={`/jobs/${ablation.job_id}`} className="link">
      job
    </Link>
  );
  if (!isFinished(ablation.state)) {
    return (
      <Group gap="xs" px="md" role="status">
        <Loader size="xs" />
        <Text size="sm">A {job} races the schedule with its neighbours …</Text>
      </Group>
    );
  }
  if (ablation.result === null) {
    return (
      <div style={{ padding: "0 1rem" }}>
        <Notice tone="warn" title={`The job ${ablation.state}`}>
          {ablation.error ? `${ablation.error}.` : "It was stopped before its races were over."} See the {job}
          .
        </Notice>
      </div>
    );
  }
  return <Effects effects={effectsOf(ablation.result.neighbours)}>A {job}</Effects>;
}

const columns: Columns<DecisionEffect> = [
  { id: "decision", header: "Decision", cell: ({ row }) => <code>{row.original.decision}</code> },
  { id: "own", header: "Here", meta: { numeric: true }, cell: ({ row }) => row.original.own },
  { id: "other", header: "Replaced by", meta: { numeric: true }, cell: ({ row }) => row.original.other },
  {
    id: "us",
    header: "Latency then",
    meta: { numeric: true },
    cell: ({ row }) => formatLatency(row.original.us),
  },
  { id: "effect", header: "This decision brings", cell: ({ row }) => effectWords(row.original) },
];

/** The effect of each decision; `children` names the job that measured them, as the beginning of a sentence. */
export function Effects({ effects, children }: { effects: DecisionEffect[]; children: ReactNode }) {
  return (
    <>
      <Text size="sm" c="var(--muted)" px="md" maw="60rem">
        Each line is a program with one decision replaced, and all that follows from it. {children} raced it
        with the schedule in the same rounds and checked its results. The decision that brings most comes
        first.
      </Text>
      <DataTable
        label="What each decision brings"
        columns={columns}
        rows={effects}
        rowId={(row) => `${row.decision} ${row.other}`}
      />
    </>
  );
}
