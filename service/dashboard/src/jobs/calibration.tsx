import { NativeSelect, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Job, Trial } from "../api/types";
import { lazyChart } from "../charts/lazy-chart";
import { Empty } from "../components/empty";
import { Ready } from "../components/ready";
import { useQueryState } from "../components/use-query-state";
import { functionName } from "../format/function-name";
import { plural } from "../format/units";
import { MODEL_NAMES } from "../workloads/models";
import { predictionsQuery } from "../workloads/queries";
import { type Calibrated, calibrations } from "./calibrations";
import { FirstChoicesPanel } from "./first-choices-panel";
import { chosenTask } from "./summary";

const HEIGHT = 260;
const CalibrationChart = lazyChart("calibration", () => import("./calibration-chart"));

/** How well the rules and each model ordered the programs of a task, over the job's trials. */
export function Calibration({ job, trials }: { job: Job; trials: readonly Trial[] }) {
  const [params] = useQueryState();
  const task = chosenTask(job, params.get("task"));
  if (task === undefined) return <Empty>The job has no task.</Empty>;
  return (
    <Stack gap="xs" px="md" pb="md">
      <TaskSelect job={job} />
      <Models job={job} hash={task.workload_hash} name={functionName(task)} />
      <FirstChoicesPanel job={job} trials={trials} hash={task.workload_hash} name={functionName(task)} />
    </Stack>
  );
}

function Models({ job, hash, name }: { job: Job; hash: string; name: string }) {
  const query = useQuery(predictionsQuery(hash, job.device_class));
  return (
    <Ready query={query}>
      {({ rounds }) => {
        const models = calibrations(rounds.filter(({ job_id }) => job_id === job.id));
        if (models.length === 0)
          return (
            <Empty>
              No model has selected a program yet: the first ones come from the rules of the space.
            </Empty>
          );
        const words = models.map(inWords).join(" ");
        return (
          <>
            <Text size="sm" c="var(--muted)">
              {`${words} 1 is a perfect order, 0 is chance.`}
            </Text>
            <CalibrationChart models={models} height={HEIGHT} summary={`${name}: ${words}`} />
          </>
        );
      }}
    </Ready>
  );
}

function inWords({ model, trials, points, mean }: Calibrated): string {
  const seen = `${MODEL_NAMES[model]} selected ${plural(trials, "measured trial")}`;
  if (mean === null) return `${seen}, in rounds too small for a rank correlation.`;
  return `${seen}; rank correlation ${mean.toFixed(2)} over ${plural(points.length, "round")}.`;
}

/** Chooses the task that the panels of the page show (`?task=`). */
export function TaskSelect({ job }: { job: Job }) {
  const [params, change] = useQueryState();
  if (job.tasks.length < 2) return null;
  return (
    <NativeSelect
      aria-label="Task of the tab"
      size="xs"
      maw="24rem"
      value={chosenTask(job, params.get("task"))?.workload_hash}
      onChange={(event) => change({ task: event.currentTarget.value })}
      data={job.tasks.map((each) => ({ value: each.workload_hash, label: functionName(each, job.tasks) }))}
    />
  );
}
