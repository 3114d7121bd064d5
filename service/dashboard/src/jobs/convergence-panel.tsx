import { NativeSelect, Text } from "@mantine/core";
import { useMemo } from "react";
import type { Job, Trial } from "../api/types";
import { lazyChart } from "../charts/lazy-chart";
import { Panel } from "../components/panel";
import { useQueryState } from "../components/use-query-state";
import { functionName } from "../format/function-name";
import { formatLatency, formatSpeedup, plural } from "../format/units";
import { convergence } from "./convergence";
import { chosenTask } from "./summary";

const HEIGHT = 320;

const ConvergenceChart = lazyChart("convergence", () => import("./convergence-chart"));

interface ConvergencePanelProps {
  job: Job;
  trials: Trial[];
}

/** How one task's search went. Which task is in the address (`?task=`), so that the view can be shared. */
export function ConvergencePanel({ job, trials }: ConvergencePanelProps) {
  const [params, change] = useQueryState();
  const task = chosenTask(job, params.get("task"));

  const curve = useMemo(
    () => convergence(trials.filter((trial) => trial.workload_hash === task?.workload_hash)),
    [trials, task?.workload_hash],
  );
  if (task === undefined) return null;

  const summary =
    curve.measured.length === 0
      ? `No trial of ${functionName(task)} has been measured.`
      : `${functionName(task)}: ${plural(curve.measured.length, "trial")} measured, ${curve.failed.length} failed; baseline ${formatLatency(task.baseline_us)}, best ${formatLatency(task.best_us)}, speedup ${formatSpeedup(task.speedup, task.interval)}${task.library === null ? "" : `, ${task.library.name} ${formatLatency(task.library.us)}`}.`;

  return (
    <Panel
      title="Convergence"
      aside={
        <NativeSelect
          aria-label="Task shown"
          size="xs"
          value={task.workload_hash}
          onChange={(event) => change({ task: event.currentTarget.value })}
          data={job.tasks.map((each) => ({
            value: each.workload_hash,
            label: functionName(each, job.tasks),
          }))}
        />
      }
    >
      <div style={{ padding: "0 1rem 1rem" }}>
        {curve.measured.length === 0 && curve.failed.length === 0 ? (
          <Text c="var(--muted)" size="sm" py="lg">
            {task.answered_from === "database"
              ? "The database already contained a schedule for this task, so no trial was needed."
              : "No trial has been measured yet. The curve starts with the first trial."}
          </Text>
        ) : (
          <ConvergenceChart
            curve={curve}
            baselineUs={task.baseline_us}
            library={task.library}
            height={HEIGHT}
            summary={summary}
          />
        )}
      </div>
    </Panel>
  );
}
