import { Stack } from "@mantine/core";
import type { Job, Trial } from "../api/types";
import { Empty } from "../components/empty";
import { FailureNote } from "../components/failure-note";
import { plural } from "../format/units";
import { failureGroups, namesInWords } from "./failures";
import { failuresInWords } from "./summary";

/** Failed trials, grouped by the message of the failing tool. */
export function FailureList({ job, trials }: { job: Job; trials: Trial[] }) {
  const groups = failureGroups(job, trials);
  if (groups.length === 0) return <Empty>No trial has failed.</Empty>;
  return (
    <Stack gap="md" px="md" pb="md">
      {groups.map((group) => (
        <FailureNote
          key={`${group.kind} ${group.stage} ${group.message}`}
          label={failuresInWords({ [group.kind]: group.trials.length })}
          message={group.message}
        >
          {`${group.kind} at ${group.stage}, ${plural(group.trials.length, "trial")}: ${namesInWords(group.trials)}`}
        </FailureNote>
      ))}
    </Stack>
  );
}
