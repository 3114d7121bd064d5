import { Button, Checkbox, Group, NumberInput, Stack, Text } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import type { Job } from "../api/types";
import { ErrorNotice } from "../components/error-notice";
import { Unfolding } from "../components/unfolding";
import { useResubmitJob } from "./queries";

/** Submits the same module again, with another budget or seed where one is wanted. */
export function ResubmitButton({ job }: { job: Job }) {
  return (
    <Unfolding
      label="Submit again"
      width={300}
      button={(toggle) => (
        <Button variant="default" onClick={toggle}>
          Submit again
        </Button>
      )}
    >
      {() => <ResubmitForm job={job} />}
    </Unfolding>
  );
}

function ResubmitForm({ job }: { job: Job }) {
  const navigate = useNavigate();
  const { mutate, isPending, error } = useResubmitJob(job.id);
  const [trials, setTrials] = useState<string | number>(job.budget.max_trials);
  const [seed, setSeed] = useState<string | number>(job.seed);
  const [force, setForce] = useState(false);

  function submit(event: FormEvent) {
    event.preventDefault();
    const body = {
      budget: { ...job.budget, max_trials: Number(trials) },
      seed: Number(seed),
      force,
    };
    mutate(body, { onSuccess: (next) => navigate(`/jobs/${next.id}`) });
  }

  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <Text size="sm">Creates a new job with the same module and target.</Text>
        <Group grow gap="xs">
          <NumberInput
            label="Trials"
            size="xs"
            min={1}
            max={1_000_000}
            allowDecimal={false}
            value={trials}
            onChange={setTrials}
          />
          <NumberInput label="Seed" size="xs" min={0} allowDecimal={false} value={seed} onChange={setSeed} />
        </Group>
        <Checkbox
          size="xs"
          label="Search even if a best is known"
          checked={force}
          onChange={(event) => setForce(event.currentTarget.checked)}
        />
        {error && <ErrorNotice error={error} />}
        <Group justify="flex-end">
          <Button type="submit" size="xs" loading={isPending} disabled={trials === "" || seed === ""}>
            Submit job
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
