import { NativeSelect, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import type { WorkloadDetail } from "../api/types";
import { CodePane } from "../code/code-pane";
import { Breakable } from "../components/breakable";
import { Fact, Facts } from "../components/facts";
import { PageHead } from "../components/page-head";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { RelativeTime } from "../components/relative-time";
import { Tag } from "../components/tag";
import { useQueryState } from "../components/use-query-state";
import { functionName } from "../format/function-name";
import { formatTarget } from "../format/target";
import { formatTensors } from "../format/tensor";
import { formatCount, formatLatency, formatScaled, formatSpeedup } from "../format/units";
import { DecisionsPanel } from "./decisions-panel";
import { HistoryPanel } from "./history-panel";
import { PredictionsPanel } from "./predictions-panel";
import { workloadQuery } from "./queries";
import { RooflinePanel } from "./roofline-panel";

export default function WorkloadPage() {
  const { hash = "" } = useParams();
  const query = useQuery(workloadQuery(hash));
  return (
    <Ready query={query} what="workload">
      {(workload) => <WorkloadView key={hash} workload={workload} />}
    </Ready>
  );
}

/** One workload on one device class, which is in the address (`?device_class=`). */
function WorkloadView({ workload }: { workload: WorkloadDetail }) {
  const [params, change] = useQueryState();
  const classes = [...new Map(workload.bests.map((best) => [best.device_class, best])).values()];
  const deviceClass = params.get("device_class") ?? "";
  return (
    <Stack gap="md">
      <PageHead
        title={functionName(workload)}
        up={{ to: "/bests", label: "Best schedules" }}
        tags={
          <>
            {workload.op && <Tag tone="neutral">{workload.op}</Tag>}
            {workload.math === "tf32" && <Tag tone="neutral">TF32 permitted</Tag>}
          </>
        }
        actions={
          classes.length > 1 && (
            <NativeSelect
              label="Device class"
              size="sm"
              value={deviceClass}
              onChange={(event) =>
                change({ device_class: event.currentTarget.value, brush: null, round: null }, true)
              }
              data={[
                { value: "", label: "The class with the most trials" },
                ...classes.map((best) => ({
                  value: best.device_class,
                  label: `${formatTarget(best.target)}, ${best.device_class.slice(0, 8)}`,
                })),
              ]}
            />
          )
        }
      >
        <Text ff="monospace" fz="xs" c="var(--muted)" style={{ overflowWrap: "anywhere" }}>
          {workload.hash}
          {workload.source && (
            <Text span inherit ff="text" ml="sm">
              <Breakable name={workload.name} />
            </Text>
          )}
        </Text>
      </PageHead>
      <Panel title="Workload">
        <div style={{ padding: "0 1rem 1rem" }}>
          <WorkloadFacts workload={workload} deviceClass={deviceClass} />
        </div>
      </Panel>
      <HistoryPanel hash={workload.hash} />
      <DecisionsPanel hash={workload.hash} deviceClass={deviceClass} />
      <PredictionsPanel hash={workload.hash} deviceClass={deviceClass} />
      <RooflinePanel hash={workload.hash} deviceClass={deviceClass} />
      <Panel title="Program">
        <div style={{ padding: "0 1rem 1rem" }}>
          <CodePane label="Unscheduled" code={workload.script} language="python" />
        </div>
      </Panel>
    </Stack>
  );
}

function WorkloadFacts({ workload, deviceClass }: { workload: WorkloadDetail; deviceClass: string }) {
  const best = workload.bests.find((each) => deviceClass === "" || each.device_class === deviceClass);
  return (
    <Facts>
      <Fact label="Arguments">{formatTensors(workload.args)}</Fact>
      <Fact label="Operations per call">{formatScaled(workload.flop, "FLOP")}</Fact>
      <Fact label="Measured trials">{formatCount(workload.records)}</Fact>
      {best && (
        <Fact label={`Best on ${formatTarget(best.target)}`}>
          <Link to={`/records/${best.record_id}`} className="link" style={{ textDecoration: "underline" }}>
            {formatLatency(best.best_us)}
          </Link>
          {`, ${formatSpeedup(best.speedup, best.certificate.interval)}`}
        </Fact>
      )}
      <Fact label="First seen">
        <RelativeTime time={workload.created_at} />
      </Fact>
      <Fact label="TVM">{workload.tvm_version}</Fact>
    </Facts>
  );
}
