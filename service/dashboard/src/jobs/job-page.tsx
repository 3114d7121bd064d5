import { Group, List, Paper, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import { ApiError } from "../api/errors";
import { jobQuery } from "../api/queries";
import { isFinished, type Job } from "../api/types";
import { ErrorNotice } from "../components/error-notice";
import { Fact, Facts } from "../components/facts";
import { NotFound } from "../components/not-found";
import { Notice } from "../components/notice";
import { Panel } from "../components/panel";
import { RelativeTime } from "../components/relative-time";
import { StateTag } from "../components/tags";
import { useNow } from "../components/use-now";
import { Waiting } from "../components/waiting";
import { formatTarget } from "../format/target";
import { formatElapsed } from "../format/time";
import { CancelButton } from "./cancel-button";
import { ConvergencePanel } from "./convergence-panel";
import classes from "./job-page.module.css";
import { JobProgress } from "./job-progress";
import { budgetInWords } from "./summary";
import { TaskTable } from "./task-table";
import { useJobEvents } from "./use-job-events";

// The event stream says at once what changed; asking now and then finds out when the stream died unnoticed.
const REFRESH_MS = 10_000;

export function JobPage() {
  const { id = "" } = useParams();
  return <JobView key={id} id={id} />;
}

function JobView({ id }: { id: string }) {
  const { data: job, error, refetch } = useQuery(jobQuery(id, REFRESH_MS));
  const live = job !== undefined && !isFinished(job.state);
  const { connection, trials } = useJobEvents(id, live);

  if (error instanceof ApiError && error.status === 404) return <NotFound what="job" />;
  if (job === undefined) return error ? <ErrorNotice error={error} onRetry={() => refetch()} /> : <Waiting />;
  return (
    <Stack gap="md">
      <title>{`${job.name || job.id} · Loopwright`}</title>
      <div>
        <Link to="/" className="link" style={{ fontSize: "0.875rem" }}>
          Jobs
        </Link>
        <Group justify="space-between" align="flex-start" gap="sm">
          <Group gap="sm" style={{ flex: "1 1 16rem", minWidth: 0 }}>
            <Title order={1} style={{ overflowWrap: "anywhere" }}>
              {job.name || job.id}
            </Title>
            <StateTag state={job.state} />
          </Group>
          {live && <CancelButton id={id} />}
        </Group>
        <div role="status" className={classes.connection}>
          {live && connection === "lost" && (
            <Notice tone="warn" title="Connection lost, retrying">
              What is shown may be out of date. It catches up by itself once the service answers.
            </Notice>
          )}
        </div>
      </div>

      {job.error && (
        <Notice tone="bad" title="The job failed">
          {job.error}
        </Notice>
      )}

      <Paper withBorder p="md" bg="var(--surface)">
        <Stack gap="md">
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

      <ConvergencePanel job={job} streamed={trials} />
      <Panel title="Tasks">
        {job.tasks.length > 0 ? (
          <TaskTable tasks={job.tasks} />
        ) : (
          <Text c="var(--muted)" size="sm" px="md" pb="md">
            {live ? "The module is still to be split into tasks." : "The module was not split into tasks."}
          </Text>
        )}
      </Panel>
    </Stack>
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
