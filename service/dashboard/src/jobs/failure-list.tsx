import { Group, Stack, Text } from "@mantine/core";
import type { Job, Trial } from "../api/types";
import { Empty } from "../components/empty";
import { Tag } from "../components/tag";
import { plural } from "../format/units";
import classes from "./failure-list.module.css";
import { failureGroups, namesInWords } from "./failures";
import { failuresInWords } from "./summary";

/** Why trials failed, in the failing tool's own words; trials with the same words stand together. */
export function FailureList({ job, trials }: { job: Job; trials: Trial[] }) {
  const groups = failureGroups(job, trials);
  if (groups.length === 0) return <Empty>No trial has failed.</Empty>;
  return (
    <Stack gap="md" px="md" pb="md">
      {groups.map((group) => (
        <div key={`${group.kind} ${group.stage} ${group.message}`}>
          <Group gap="xs">
            <Tag tone="bad">{failuresInWords({ [group.kind]: group.trials.length })}</Tag>
            <Text size="sm" c="var(--muted)">
              {`${group.kind} at ${group.stage}, ${plural(group.trials.length, "trial")}: ${namesInWords(group.trials)}`}
            </Text>
          </Group>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
          <pre className={classes.message} tabIndex={0}>
            {group.message}
          </pre>
        </div>
      ))}
    </Stack>
  );
}
