import { List, Paper, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useParams } from "react-router";
import { isFinished, type Job } from "../api/types";
import { BottleneckPanel } from "../bottlenecks/bottleneck-panel";
import { ErrorNotice } from "../components/error-notice";
import { Fact, Facts } from "../components/facts";
import { Notice } from "../components/notice";
import { PageHead } from "../components/page-head";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { RelativeTime } from "../components/relative-time";
import { PrivateTag, StateTag } from "../components/tags";
import { useNow } from "../components/use-now";
import { formatTarget } from "../format/target";
import { formatElapsed } from "../format/time";
import { ActivityPanel } from "./activity-panel";
import { mergeTrials } from "./convergence";
import { ConvergencePanel } from "./convergence-panel";
import { GatePanel } from "./gate-panel";
import { JobActions } from "./job-actions";
import classes from "./job-page.module.css";
import { JobProgress } from "./job-progress";
import { JobTag } from "./job-tag";
import { ModelPanel } from "./model-panel";
import { ModelTreePanel } from "./model-tree-panel";
import { NoTasks } from "./no-tasks";
import { jobQuery, trialsQuery } from "./queries";
import { budgetInWords } from "./summary";
import { TargetPanel } from "./target-panel";
import { TaskTable } from "./task-table";
import { useJobEvents } from "./use-job-events";
import { Verdict } from "./verdict-lines";

// The event stream says at once what changed; asking now and then finds out when the stream died unnoticed.
const REFRESH_MS = 10_000;

const FAILED = { tone: "bad", title: "The job failed" } as const;
const PARTLY = { tone: "warn", title: "The job succeeded only partly" } as const;

export default function JobPage() {
  const { id = "" } = useParams();
  return <JobView key={id} id={id} />;
}

function JobView({ id }: { id: string }) {
  const query = useQuery(jobQuery(id, REFRESH_MS));
  const listed = useQuery(trialsQuery(id));
  const live = query.data !== undefined && !isFinished(query.data.state);
  const { connection, trials: streamed, events } = useJobEvents(id, live);
  const trials = useMemo(() => mergeTrials(listed.data ?? [], streamed), [listed.data, streamed]);
  return (
    <Stack gap="md">
      <Ready query={query} what="job">
        {(job) => (
          <>
            <PageHead
              title={job.name || job.id}
              up={{ to: "/jobs", label: "Jobs" }}
              tags={
                <>
                  <StateTag state={job.state} />
                  {job.visibility === "private" && <PrivateTag />}
                  {(job.tags ?? []).map((tag) => (
                    <JobTag key={tag} tag={tag} />
                  ))}
                </>
              }
              actions={<JobActions job={job} />}
            >
              <div role="status" className={classes.connection}>
                {live && connection === "lost" && (
                  <Notice tone="warn" title="Connection lost, retrying">
                    This view may be out of date. It updates by itself when the service answers again.
                  </Notice>
                )}
              </div>
            </PageHead>
            {job.error && <Notice {...(job.state === "partly" ? PARTLY : FAILED)}>{job.error}</Notice>}
            <Summary job={job} />
            <TargetPanel job={job} />
            <ModelPanel job={job} />
            <GatePanel id={job.id} />
            <BottleneckPanel job={job} />
            {listed.error && <ErrorNotice error={listed.error} onRetry={() => listed.refetch()} />}
            <ModelTreePanel job={job} />
            <ConvergencePanel job={job} trials={trials} />
            {job.tasks.length > 0 ? (
              <Panel title="Tasks">
                <TaskTable tasks={job.tasks} />
              </Panel>
            ) : (
              <NoTasks id={job.id} />
            )}
            <ActivityPanel job={job} trials={trials} events={events} />
          </>
        )}
      </Ready>
    </Stack>
  );
}

function Summary({ job }: { job: Job }) {
  return (
    <Paper withBorder p="md" bg="var(--surface)" style={{ overflowWrap: "anywhere" }}>
      <Stack gap="md">
        <Verdict job={job} />
        {job.description && (
          <Text size="sm" style={{ whiteSpace: "pre-wrap" }}>
            {job.description}
          </Text>
        )}
        <JobProgress progress={job.progress} active={job.state === "running"} />
        <JobFacts job={job} />
        {job.notes.length > 0 && (
          <div>
            <Text size="sm" c="var(--muted)">
              Notes
            </Text>
            <List size="sm">
              {job.notes.map((note) => (
                <List.Item key={note}>{note}</List.Item>
              ))}
            </List>
          </div>
        )}
      </Stack>
    </Paper>
  );
}

function JobFacts({ job }: { job: Job }) {
  return (
    <Facts>
      <Fact label="Target" title={JSON.stringify(job.target)}>
        {formatTarget(job.target)}
      </Fact>
      <Fact label="Created">
        <RelativeTime time={job.created_at} />
      </Fact>
      {job.started_at && (
        <Fact label="Time taken">
          <Elapsed from={job.started_at} to={job.finished_at} />
        </Fact>
      )}
      <Fact label="Owner">{job.owner}</Fact>
      <Fact label="Budget">{budgetInWords(job.budget)}</Fact>
      <Fact label="Seed">{job.seed}</Fact>
      <Fact label="Priority">{job.priority}</Fact>
    </Facts>
  );
}

function Elapsed({ from, to }: { from: string; to: string | null }) {
  const now = useNow();
  return formatElapsed((to ? new Date(to) : now).getTime() - new Date(from).getTime());
}
