import { Button, Group, Stack, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import type { Job } from "../api/types";
import { ErrorNotice } from "../components/error-notice";
import { Unfolding } from "../components/unfolding";
import { useDescribeJob } from "./queries";

/** Changes the tags and the description of a job. */
export function DescribeButton({ job }: { job: Job }) {
  return (
    <Unfolding
      label="Describe"
      width={340}
      button={(toggle) => (
        <Button variant="default" onClick={toggle}>
          Describe
        </Button>
      )}
    >
      {(close) => <DescribeForm job={job} onDone={close} />}
    </Unfolding>
  );
}

function DescribeForm({ job, onDone }: { job: Job; onDone(): void }) {
  const { mutate, isPending, error } = useDescribeJob(job.id);
  const [tags, setTags] = useState((job.tags ?? []).join(", "));
  const [description, setDescription] = useState(job.description);

  function save(event: FormEvent) {
    event.preventDefault();
    mutate({ tags: tagsOf(tags), description }, { onSuccess: onDone });
  }

  return (
    <form onSubmit={save}>
      <Stack gap="sm">
        <TextInput
          label="Tags"
          description="Words with commas between, such as nightly, release"
          size="xs"
          value={tags}
          onChange={(event) => setTags(event.currentTarget.value)}
        />
        <Textarea
          label="Description"
          size="xs"
          autosize
          minRows={3}
          maxRows={12}
          maxLength={4_000}
          value={description}
          onChange={(event) => setDescription(event.currentTarget.value)}
        />
        {error && <ErrorNotice error={error} />}
        <Group justify="flex-end">
          <Button type="submit" size="xs" loading={isPending}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** The tags in a text with commas between, each once. */
export function tagsOf(text: string): string[] {
  return [...new Set(text.split(",").map((tag) => tag.trim()))].filter((tag) => tag !== "");
}
