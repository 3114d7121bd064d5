import { NativeSelect, Skeleton, Text } from "@mantine/core";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useSearchParams } from "react-router";
import { UnreachableError } from "../api/errors";
import { trialsQuery } from "../api/queries";
import type { Job, Trial } from "../api/types";
import { ErrorNotice } from "../components/error-notice";
import { Panel } from "../components/panel";
import { formatLatency, formatSpeedup, plural } from "../format/units";
import { convergence, mergeTrials } from "./convergence";
import type { ConvergenceChartProps } from "./convergence-chart";
import { costliestTask } from "./summary";

const HEIGHT = 320;

// Loaded as a query, not with React's `lazy`: that remembers a failure for good and takes the whole page down with it.
const chartQuery = queryOptions({
  queryKey: ["code", "convergence-chart"],
  queryFn: () =>
    import("./convergence-chart").catch(() => {
      throw new UnreachableError();
    }),
  staleTime: Number.POSITIVE_INFINITY,
  gcTime: Number.POSITIVE_INFINITY,
});

interface ConvergencePanelProps {
  job: Job;
  /** Trials newer than the list, from the event stream. */
  streamed: ReadonlyMap<string, Trial>;
}

/** How one task's search went. Which task is in the address (`?task=`), so that the view can be shared. */
export function ConvergencePanel({ job, streamed }: ConvergencePanelProps) {
  const listed = useQuery(trialsQuery(job.id));
  const [params, setParams] = useSearchParams();
  const chosen = job.tasks.find((task) => task.workload_hash === params.get("task"));
  const task = chosen ?? costliestTask(job);

  const curve = useMemo(
    () =>
      convergence(
        mergeTrials(listed.data ?? [], streamed).filter(
          (trial) => trial.workload_hash === task?.workload_hash,
        ),
      ),
    [listed.data, streamed, task?.workload_hash],
  );
  if (task === undefined) return null;

  const summary =
    curve.measured.length === 0
      ? `No trial of ${task.name} has been measured.`
      : `${task.name}: ${plural(curve.measured.length, "trial")} measured, ${curve.failed.length} failed; baseline ${formatLatency(task.baseline_us)}, best ${formatLatency(task.best_us)}, speedup ${formatSpeedup(task.speedup)}.`;

  return (
    <Panel
      title="Convergence"
      aside={
        <NativeSelect
          aria-label="Task shown"
          size="xs"
          value={task.workload_hash}
          onChange={(event) => setParams({ task: event.currentTarget.value }, { replace: true })}
          data={job.tasks.map(({ workload_hash, name }) => ({ value: workload_hash, label: name }))}
        />
      }
    >
      <div style={{ padding: "0 1rem 1rem" }}>
        {listed.error && <ErrorNotice error={listed.error} onRetry={() => listed.refetch()} />}
        {curve.measured.length === 0 && curve.failed.length === 0 ? (
          <Text c="var(--muted)" size="sm" py="lg">
            {task.answered_from === "database"
              ? "The database knew the answer, so no trial was needed."
              : "No trial yet. The curve starts with the first one."}
          </Text>
        ) : (
          <Plot curve={curve} baselineUs={task.baseline_us} height={HEIGHT} summary={summary} />
        )}
      </div>
    </Panel>
  );
}

function Plot(props: ConvergenceChartProps) {
  const { data, error, refetch } = useQuery(chartQuery);
  if (data) return <data.default {...props} />;
  if (error) return <ErrorNotice error={error} onRetry={refetch} />;
  return <Skeleton height={props.height} />;
}
