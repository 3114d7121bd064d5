import { Checkbox, Input, NumberInput, SegmentedControl, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { targetsQuery } from "../fleet/queries";
import { formatTarget } from "../format/target";
import { plural } from "../format/units";
import { AUTO, chosenTargets, type Problems, type SubmitForm } from "./form";
import { MoreOptions } from "./more-options";

interface OptionsProps {
  form: SubmitForm;
  problems: Problems;
  onChange(changes: Partial<SubmitForm>): void;
}

/** Options of a job: targets, budget and others. */
export function Options({ form, problems, onChange }: OptionsProps) {
  const { data: targets } = useQuery(targetsQuery);
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
      <Checkbox.Group
        label="Targets"
        description="Of the workers that are alive; one job for each target"
        value={form.targets}
        onChange={(values) => onChange({ targets: chosenTargets(values) })}
      >
        <Stack gap={6} mt={6}>
          <Checkbox value={AUTO} label="auto" />
          {(targets?.items ?? []).map((offer) => (
            <Checkbox
              key={JSON.stringify(offer.target)}
              value={JSON.stringify(offer.target)}
              label={`${formatTarget(offer.target)}, ${plural(offer.workers, "worker")}${offer.is_auto ? " (auto)" : ""}`}
            />
          ))}
        </Stack>
      </Checkbox.Group>
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
      </SimpleGrid>
      <Checkbox
        label="Stop at the plateau"
        description="End the search when its next minute is expected to gain less than 1 %"
        checked={form.untilPlateau}
        onChange={(event) => onChange({ untilPlateau: event.currentTarget.checked })}
      />
      <Checkbox
        label="Search even if a best is known"
        checked={form.force}
        onChange={(event) => onChange({ force: event.currentTarget.checked })}
      />
      <Checkbox
        label="Private"
        description="Only you and admins see the job. Others see its workloads only if they were submitted in another job, too."
        checked={form.private}
        onChange={(event) => onChange({ private: event.currentTarget.checked })}
      />
      <MoreOptions form={form} problems={problems} onChange={onChange} />
    </Stack>
  );
}
