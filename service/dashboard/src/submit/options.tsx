import {
  Checkbox,
  Input,
  NativeSelect,
  NumberInput,
  SegmentedControl,
  SimpleGrid,
  Stack,
  TextInput,
} from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMay } from "../auth/queries";
import { targetsQuery } from "../fleet/queries";
import { formatTarget } from "../format/target";
import { plural } from "../format/units";
import type { SubmitForm } from "./form";

interface OptionsProps {
  form: SubmitForm;
  problems: Partial<Record<keyof SubmitForm, string>>;
  onChange(changes: Partial<SubmitForm>): void;
}

/** Options of a job: target, budget and others. */
export function Options({ form, problems, onChange }: OptionsProps) {
  const { data: targets } = useQuery(targetsQuery);
  const mayPassOthers = useMay("administer");
  return (
    <Stack gap="sm">
      <TextInput
        label="Name"
        description="Name of the job in lists"
        maxLength={200}
        value={form.name}
        onChange={(event) => onChange({ name: event.currentTarget.value })}
      />
      <TextInput
        label="Tags"
        description="Words with commas between, by which lists of jobs are narrowed"
        value={form.tags}
        onChange={(event) => onChange({ tags: event.currentTarget.value })}
      />
      <Input.Wrapper label="Format" labelElement="div" labelProps={{ id: "format-label" }}>
        <SegmentedControl
          aria-labelledby="format-label"
          fullWidth
          size="xs"
          value={form.format}
          onChange={(format) => onChange({ format })}
          data={[
            { value: "tvmscript", label: "TVMScript" },
            { value: "tvm-json", label: "TVM's JSON" },
          ]}
        />
      </Input.Wrapper>
      <NativeSelect
        label="Target"
        description="Targets of the workers that are alive"
        value={form.target}
        onChange={(event) => onChange({ target: event.currentTarget.value })}
        data={[
          { value: "auto", label: "auto" },
          ...(targets?.items ?? []).map((offer) => ({
            value: JSON.stringify(offer.target),
            label: `${formatTarget(offer.target)}, ${plural(offer.workers, "worker")}${offer.is_auto ? " (auto)" : ""}`,
          })),
        ]}
      />
      <SimpleGrid cols={2} spacing="sm">
        <NumberInput
          label="Trials"
          min={1}
          max={1_000_000}
          allowDecimal={false}
          value={form.trials}
          error={problems.trials}
          onChange={(trials) => onChange({ trials })}
        />
        <NumberInput
          label="Maximum minutes"
          min={0}
          value={form.minutes}
          error={problems.minutes}
          onChange={(minutes) => onChange({ minutes })}
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
      <Checkbox
        label="Stop at the plateau"
        description="End the search when its next minute is expected to gain less than 1 %"
        checked={form.untilPlateau}
        onChange={(event) => onChange({ untilPlateau: event.currentTarget.checked })}
      />
      <TextInput
        label="Symbolic extents"
        description="Values for a module with symbolic shapes"
        placeholder="n=128, m=64"
        value={form.shapes}
        error={problems.shapes}
        onChange={(event) => onChange({ shapes: event.currentTarget.value })}
      />
      <Checkbox
        label="Search even if a best is known"
        checked={form.force}
        onChange={(event) => onChange({ force: event.currentTarget.checked })}
      />
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
      <Checkbox
        label="Private"
        description="Only you and admins see the job. Others see its workloads only if they were submitted in another job, too."
        checked={form.private}
        onChange={(event) => onChange({ private: event.currentTarget.checked })}
      />
    </Stack>
  );
}
