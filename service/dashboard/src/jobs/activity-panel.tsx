import { Tabs, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { isFinished, type Job, type Trial } from "../api/types";
import { lazyChart } from "../charts/lazy-chart";
import { Empty } from "../components/empty";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { useQueryState } from "../components/use-query-state";
import { formatMilliseconds } from "../format/time";
import { formatCount, plural } from "../format/units";
import { Calibration } from "./calibration";
import { EventList } from "./event-list";
import { FailureList } from "./failure-list";
import type { JobEvent } from "./job-event";
import { SpaceCoverage } from "./space-coverage";
import { type Lane, lanesOf, STAGES, timeByStage } from "./trial-spans";
import { jobEventsQuery } from "./use-job-events";

const TimelineChart = lazyChart("timeline", () => import("./timeline-chart"));

const LANE_PX = 30;
const AXES_PX = 90;

interface ActivityPanelProps {
  job: Job;
  trials: Trial[];
  /** Events that the stream sent while the page was open. */
  events: readonly JobEvent[];
}

/** Timeline, models, coverage, failures and events of a job. The tab is in the address (`?tab=`). */
export function ActivityPanel({ job, trials, events }: ActivityPanelProps) {
  const [params, change] = useQueryState();
  const { failed } = job.progress;
  return (
    <Panel title="Activity">
      <Tabs
        value={params.get("tab") ?? "timeline"}
        onChange={(tab) => change({ tab: tab === "timeline" ? null : tab })}
        keepMounted={false}
      >
        <Tabs.List px="md" mb="md">
          <Tabs.Tab value="timeline">Timeline</Tabs.Tab>
          <Tabs.Tab value="calibration">Calibration</Tabs.Tab>
          <Tabs.Tab value="coverage">Coverage</Tabs.Tab>
          <Tabs.Tab value="failures">{`Failures (${formatCount(failed)})`}</Tabs.Tab>
          <Tabs.Tab value="events">Events</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="timeline">
          <Timeline job={job} trials={trials} />
        </Tabs.Panel>
        <Tabs.Panel value="calibration">
          <Calibration job={job} trials={trials} />
        </Tabs.Panel>
        <Tabs.Panel value="coverage">
          <SpaceCoverage job={job} trials={trials} />
        </Tabs.Panel>
        <Tabs.Panel value="failures">
          <FailureList job={job} trials={trials} />
        </Tabs.Panel>
        <Tabs.Panel value="events">
          {isFinished(job.state) ? <PastEvents job={job} /> : <EventList job={job} events={[...events]} />}
        </Tabs.Panel>
      </Tabs>
    </Panel>
  );
}

/** How long each phase took: "In the queue 4 s, searching 40 s, closing races 12 s. " */
function phasesInWords(lanes: readonly Lane[]): string {
  const phases = lanes.find(({ kind }) => kind === "phase")?.slices ?? [];
  const words = phases
    .map(({ words, start, end }) => `${words} ${formatMilliseconds(end - start)}`)
    .join(", ");
  return words && `${words.charAt(0).toUpperCase()}${words.slice(1)}. `;
}

function PastEvents({ job }: { job: Job }) {
  const query = useQuery(jobEventsQuery(job.id));
  return <Ready query={query}>{(events) => <EventList job={job} events={events} />}</Ready>;
}

function Timeline({ job, trials }: { job: Job; trials: Trial[] }) {
  const lanes = useMemo(() => lanesOf(job, trials, Date.now()), [job, trials]);
  if (lanes.length === 0)
    return <Empty>{isFinished(job.state) ? "No trial was made." : "No trial has started yet."}</Empty>;
  const total = timeByStage(lanes);
  const words = STAGES.map((stage) => `${stage} ${formatMilliseconds(total[stage])}`).join(", ");
  return (
    <div style={{ padding: "0 1rem 1rem" }}>
      <Text size="sm" c="var(--muted)" mb="xs">
        {phasesInWords(lanes)}
        {`Total time over all workers: ${words}. Drag the handles below the plot to zoom in.`}
      </Text>
      <TimelineChart
        lanes={lanes}
        height={lanes.length * LANE_PX + AXES_PX}
        summary={`Timeline of ${lanes.length} lanes: ${lanes.map(({ label, slices }) => `${label}, ${plural(slices.length, "slice")}`).join("; ")}.`}
      />
    </div>
  );
}
