import { Stack, Text } from "@mantine/core";
import { Link } from "react-router";
import type { RecordDetail } from "../api/types";
import { Fact, Facts } from "../components/facts";
import { RelativeTime } from "../components/relative-time";
import { SandboxTag } from "../components/sandbox-tag";
import { formatDeviceState } from "../format/device-state";
import { formatTarget } from "../format/target";
import { formatSmall } from "../format/units";

const ORIGINS: Record<string, string> = {
  baseline: "It is the baseline: what the compiler makes of the untouched program.",
  seed: "It was a starting point of a rule of the design space.",
  random: "It was drawn at random from the design space.",
  mutation: "It is a small change of another candidate.",
  crossover: "It joins decisions of two candidates.",
  transfer: "It was fast for the same function at other shapes, and was adapted.",
  import: "It was imported from another database.",
};

function formatKnobs(knobs: Record<string, number>): string {
  return Object.entries(knobs)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

/** Where a record comes from. */
export function Provenance({ record }: { record: RecordDetail }) {
  return (
    <Stack gap="sm">
      <Text size="sm">
        {ORIGINS[record.origin] ?? `Its origin is ${record.origin}.`}{" "}
        {record.parent && (
          <>
            The candidate that it came from has the digest <code>{record.parent.slice(0, 12)}</code>.
          </>
        )}
      </Text>
      <Facts>
        <Fact label="Origin">{record.origin}</Fact>
        {record.rule && (
          <Fact label="Rule" title={`Version ${record.rule.version}, with the values of its knobs`}>
            {record.rule.name}: {formatKnobs(record.rule.knobs)}
          </Fact>
        )}
        {record.packs_weight && (
          <Fact label="Weight" title="The times are those of calls, which find the weight packed">
            packed once, when a program is compiled
          </Fact>
        )}
        {record.math === "tf32" && (
          <Fact label="Math" title="Factors of float32 are rounded to 10 bits of mantissa">
            TF32
          </Fact>
        )}
        {record.job_id && (
          <Fact label="Job">
            <Link to={`/jobs/${record.job_id}`} className="link">
              {record.job_name || record.job_id}
            </Link>
          </Fact>
        )}
        <Fact label="Measured">
          <RelativeTime time={record.created_at} />
        </Fact>
        {record.worker && <Fact label="Worker">{record.worker}</Fact>}
        {record.device_state && (
          <Fact label="GPU" title="Clocks, temperature and power right after the samples">
            {formatDeviceState(record.device_state)}
          </Fact>
        )}
        {record.sandbox && (
          <Fact label="Sandbox">
            <SandboxTag level={record.sandbox} />
          </Fact>
        )}
        {record.predicted !== null && (
          <Fact label="Predicted score" title="What the cost model said: higher is faster; it has no unit">
            {formatSmall(record.predicted)}
          </Fact>
        )}
        {record.seed !== null && <Fact label="Seed">{record.seed}</Fact>}
        <Fact label="Target" title={JSON.stringify(record.target, null, 2)}>
          {formatTarget(record.target)}
        </Fact>
        <Fact label="Device class" title={JSON.stringify(record.device, null, 2)}>
          <code>{record.device_class}</code>
        </Fact>
        <Fact label="TVM">{record.tvm_version}</Fact>
        <Fact label="Record">
          <code>{record.id}</code>
        </Fact>
      </Facts>
    </Stack>
  );
}
