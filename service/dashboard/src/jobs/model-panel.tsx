import { Paper } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Job } from "../api/types";
import { Panel } from "../components/panel";
import { RelativeTime } from "../components/relative-time";
import { Stat, Stats } from "../components/stat";
import { formatLatency, formatSpeedup, plural } from "../format/units";
import { EngineTable } from "./engine-table";
import { FiguresTable } from "./figures-table";
import { untunedOf } from "./model-figures";
import { comparisonQuery } from "./queries";

/** The whole model's latencies and speedup, and a comparison with other engines if there is one. */
export function ModelPanel({ job }: { job: Job }) {
  const { data: comparison } = useQuery(comparisonQuery(job.id));
  return (
    <>
      {job.model && (
        <Paper component="section" aria-label="Whole model" bg="transparent">
          <Stats>
            <Stat
              label="Speedup"
              value={formatSpeedup(job.model.speedup, job.model.interval)}
              note="of one run of the model"
            />
            <Stat
              label="Tuned model"
              value={formatLatency(job.model.latency_us)}
              note={
                job.model.measured_us == null
                  ? "sum of its functions with the best schedules so far"
                  : `measured, with random weights; its functions take ${formatLatency(job.model.best_us)}`
              }
            />
            <Stat
              label="Untuned model"
              value={formatLatency(untunedOf(job.model))}
              note={
                job.model.baseline_measured_us == null
                  ? `sum of ${plural(job.tasks.length, "function")}, weighted by calls`
                  : `measured in turns with the tuned model; its functions take ${formatLatency(job.model.baseline_us)}`
              }
            />
          </Stats>
          <FiguresTable job={job} comparison={comparison} />
        </Paper>
      )}
      {comparison && (
        <Panel
          title="Compared with other engines"
          aside={
            <span className="muted">
              measured by {comparison.user}, <RelativeTime time={comparison.created_at} />
            </span>
          }
        >
          <EngineTable comparison={comparison} />
        </Panel>
      )}
    </>
  );
}
