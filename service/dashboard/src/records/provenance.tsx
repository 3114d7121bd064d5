import { Stack, Text } from "@mantine/core";
import { Link } from "react-router";
import type { RecordDetail } from "../api/types";
import { Fact, Facts } from "../components/facts";
import { RelativeTime } from "../components/relative-time";
import { SandboxTag } from "../components/sandbox-tag";
import { formatDeviceState } from "../format/device-state";
import { formatTarget, machineOf } from "../format/target";
import { formatSmall } from "../format/units";

const ORIGINS: Record<string, string> = {
  baseline: "This is the baseline: the program as it was submitted, without a schedule.",
  seed: "This is an initial candidate that a rule of the design space proposes.",
  random: "This candidate was drawn at random from the design space.",
  mutation: "This candidate changes a few decisions of another candidate.",
  transfer:
    "This candidate adapts a schedule that was fast for this function, or for the same function at other shapes.",
  import: "This schedule was imported from another database.",
};

function formatKnobs(knobs: Record<string, number>): string {
  return Object.entries(knobs)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

/** The provenance of a record. */
export function Provenance({ record }: { record: RecordDetail }) {
  return (
    <Stack gap="sm">
      <Text size="sm">{ORIGINS[record.origin] ?? `The origin is ${record.origin}.`}</Text>
      <Facts>
        <Fact label="Origin">{record.origin}</Fact>
        {record.rule && (
          <Fact
            label="Rule"
            title={`Version ${record.rule.version} of the rule, with the values of its parameters`}
          >
            {record.rule.name}: {formatKnobs(record.rule.knobs)}
          </Fact>
        )}
        {record.packs_weight && (
          <Fact label="Weight" title="The weight is packed before the calls that are timed">
            packed once, at compile time
          </Fact>
        )}
        {record.math === "tf32" && (
          <Fact label="Math" title="Operands of float32 products are rounded to a mantissa of 10 bits">
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
          <Fact
            label="Predicted score"
            title="Score that the model of that time predicted, which ranks candidates: higher means faster; the score has no unit"
          >
            {formatSmall(record.predicted)}
          </Fact>
        )}
        {record.seed !== null && <Fact label="Random seed">{record.seed}</Fact>}
        <Fact label="Target" title={JSON.stringify(record.target, null, 2)}>
          {formatTarget(record.target)}
        </Fact>
        <Fact label="Device class" title={JSON.stringify(record.device, null, 2)}>
          {machineOf(record)} <code>{record.device_class}</code>
        </Fact>
        <Fact label="TVM">{record.tvm_version}</Fact>
        <Fact label="Record">
          <code>{record.id}</code>
        </Fact>
      </Facts>
    </Stack>
  );
}
