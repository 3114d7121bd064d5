import {
  Button,
  Checkbox,
  FileButton,
  Group,
  Input,
  NumberInput,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useState } from "react";
import { useMay } from "../auth/queries";
import { plural } from "../format/units";
import type { DesignSpace, Problems, SubmitForm } from "./form";
import { parseSpace } from "./words";

interface MoreOptionsProps {
  form: SubmitForm;
  problems: Problems;
  onChange(changes: Partial<SubmitForm>): void;
}

const FOLDED: (keyof SubmitForm)[] = ["otherTargets", "deviceSeconds", "latency", "shapes", "labels"];

/** Options that few jobs need, folded away unless one of them is wrong. */
export function MoreOptions({ form, problems, onChange }: MoreOptionsProps) {
  const mayPassOthers = useMay("administer");
  const [open, setOpen] = useState(false);
  const isWrong = FOLDED.some((field) => problems[field] !== undefined);
  return (
    <details open={open || isWrong} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <Text component="summary" size="sm" style={{ cursor: "pointer" }}>
        More options
      </Text>
      <Stack gap="sm" mt="sm">
        <Textarea
          label="Description"
          description="What the job is for"
          autosize
          minRows={2}
          maxRows={8}
          maxLength={4_000}
          value={form.description}
          onChange={(event) => onChange({ description: event.currentTarget.value })}
        />
        <Textarea
          label="Other targets"
          description="A target string, tag or JSON a line"
          placeholder="llvm -mcpu=x86-64-v3"
          autosize
          minRows={1}
          maxRows={8}
          spellCheck={false}
          value={form.otherTargets}
          error={problems.otherTargets}
          onChange={(event) => onChange({ otherTargets: event.currentTarget.value })}
        />
        <TextInput
          label="Labels"
          description="Only workers with all of these labels measure the job"
          placeholder="rack=a, gpu=h200"
          value={form.labels}
          error={problems.labels}
          onChange={(event) => onChange({ labels: event.currentTarget.value })}
        />
        <SimpleGrid cols={2} spacing="sm" style={{ alignItems: "end" }}>
          <NumberInput
            label="Maximum device seconds"
            min={0}
            value={form.deviceSeconds}
            error={problems.deviceSeconds}
            onChange={(deviceSeconds) => onChange({ deviceSeconds })}
          />
          <NumberInput
            label="Target latency, µs"
            min={0}
            value={form.latency}
            error={problems.latency}
            onChange={(latency) => onChange({ latency })}
          />
          <NumberInput
            label="Seed"
            min={0}
            allowDecimal={false}
            value={form.seed}
            onChange={(seed) => onChange({ seed })}
          />
          <NumberInput
            label="Priority"
            min={-100}
            max={mayPassOthers ? 100 : 0}
            allowDecimal={false}
            value={form.priority}
            onChange={(priority) => onChange({ priority })}
          />
        </SimpleGrid>
        <TextInput
          label="Symbolic extents"
          description="Values for a module with symbolic shapes; each combination of several values is tuned"
          placeholder="n=1, 64, m=128"
          value={form.shapes}
          error={problems.shapes}
          onChange={(event) => onChange({ shapes: event.currentTarget.value })}
        />
        <SpaceInput space={form.space} onChange={(space) => onChange({ space })} />
        <Checkbox
          label="Exact math"
          description="Use exp, tanh, erf and log of the C library, instead of faster versions whose error is a few units in the last place"
          checked={form.exactMath}
          onChange={(event) => onChange({ exactMath: event.currentTarget.checked })}
        />
        <Checkbox
          label="Permit TF32"
          description="On GPUs of compute capability 8.0 or later, float32 products and convolutions may round their operands to a mantissa of 10 bits"
          checked={form.tf32}
          onChange={(event) => onChange({ tf32: event.currentTarget.checked })}
        />
      </Stack>
    </details>
  );
}

interface SpaceInputProps {
  space: DesignSpace | null;
  onChange(space: DesignSpace | null): void;
}

/** Input of a design space: a file with a list of traces. */
function SpaceInput({ space, onChange }: SpaceInputProps) {
  const [refused, setRefused] = useState<string | null>(null);

  async function read(file: File | null) {
    if (file === null) return;
    const traces = parseSpace(await file.text());
    setRefused(traces === null ? `${file.name} is no JSON file with a list of traces.` : null);
    if (traces !== null) onChange({ fileName: file.name, traces });
  }

  return (
    <Input.Wrapper
      label="Design space"
      labelElement="div"
      description="JSON file with a list of traces, instead of the built-in design space"
      error={refused}
    >
      <Group gap="xs" mt={4}>
        <FileButton accept=".json,application/json" onChange={read}>
          {(props) => (
            <Button {...props} variant="default" size="xs">
              Choose a design space
            </Button>
          )}
        </FileButton>
        {space !== null && (
          <>
            <Text size="xs" className="numeric">
              {`${space.fileName}, ${plural(space.traces.length, "trace")}`}
            </Text>
            <Button variant="subtle" size="xs" onClick={() => onChange(null)}>
              Use the built-in design space
            </Button>
          </>
        )}
      </Group>
    </Input.Wrapper>
  );
}
