import { Stack, Text } from "@mantine/core";
import type { Assembly } from "../api/types";
import { Fact, Facts } from "../components/facts";
import { formatShare, formatSmall, plural } from "../format/units";
import { hotLoopOf } from "./machine-code";

type Model = NonNullable<Assembly["loops"][number]["model"]>;

const BOUNDS: Record<Model["bound"], string> = {
  arithmetic: "its vector arithmetic, of which a core starts two instructions in a cycle",
  loads: "its loads, of which a core starts two in a cycle",
  stores: "its stores, of which a core starts one in a cycle",
  shuffles: "its shuffles, of which a core starts one in a cycle",
  instructions: "the number of its instructions, of which a core starts four in a cycle",
  latency:
    "sums that wait for one another: each addition to the same register waits four cycles for the one before",
};

/** Counts of the hot loop, and what limits it by the static model. */
export function HotLoop({ assembly }: { assembly: Assembly }) {
  const loop = hotLoopOf(assembly);
  if (loop === null) {
    return (
      <Text size="sm" c="var(--muted)">
        The compiler left no loop in this code.
      </Text>
    );
  }
  const where = `Lines ${loop.first} to ${loop.last} of the assembly`;
  if (loop.model === null) {
    return (
      <Text size="sm">
        <strong>Hot loop.</strong> {where}. Its instructions are counted for x86 only.
      </Text>
    );
  }
  return <Modelled model={loop.model} where={where} />;
}

function Modelled({ model, where }: { model: Model; where: string }) {
  const moved = model.loaded_bytes + model.stored_bytes;
  return (
    <Stack gap="xs">
      <Text size="sm" maw="60rem">
        <strong>Hot loop.</strong> {where}. An iteration takes at least{" "}
        {plural(Number(formatSmall(model.cycles)), "cycle")}, limited by {BOUNDS[model.bound]}.
        {model.operations > 0 && (
          <> At that speed it reaches {formatShare(model.peak_share)} of the peak of the vector unit.</>
        )}
      </Text>
      <Facts>
        <Fact label="Instructions">{model.instructions}</Fact>
        <Fact label="Multiply-adds" title="Fused multiplications and additions, and products that sum">
          {model.fma}
        </Fact>
        <Fact label="Other arithmetic">{model.arithmetic}</Fact>
        <Fact label="Shuffles">{model.shuffles}</Fact>
        <Fact label="Loads">{`${model.loads}, ${model.loaded_bytes} B`}</Fact>
        <Fact label="Stores">{`${model.stores}, ${model.stored_bytes} B`}</Fact>
        <Fact
          label="On the stack"
          title="Loads and stores among these on the stack: mostly values for which there was no register"
        >
          {model.stack}
        </Fact>
        <Fact label="Vectors">{model.vector_bits === 0 ? "none" : `${model.vector_bits} bits`}</Fact>
        {moved > 0 && model.operations > 0 && (
          <Fact label="Operations per byte" title="Of data that goes between registers and the first cache">
            {formatSmall(model.operations / moved)}
          </Fact>
        )}
      </Facts>
      <Text size="xs" c="var(--muted)" maw="60rem">
        The figures are for one iteration, counted from the instructions. They are no measurement: the model
        takes all data to be in the first cache, and knows no branch that is predicted wrongly.
        {model.divisions > 0 && " Its divisions and square roots take longer than the model says."}
      </Text>
    </Stack>
  );
}
