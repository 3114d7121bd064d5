import { List, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Job } from "../api/types";
import { comparisonQuery } from "./queries";
import { costInWords, restInWords, speedInWords, stateInWords } from "./verdict";

/** What is asked of a job first: whether it is done, how fast against what, what is left, and what it cost. */
export function Verdict({ job }: { job: Job }) {
  const { data: comparison } = useQuery(comparisonQuery(job.id));
  const rest = restInWords(job);
  return (
    <section aria-label="Verdict">
      <Text fw={600}>{stateInWords(job)}</Text>
      <List size="sm" mt={4}>
        {speedInWords(job, comparison).map((words) => (
          <List.Item key={words}>{words}</List.Item>
        ))}
        {rest && <List.Item>{rest}</List.Item>}
        <List.Item>{costInWords(job)}</List.Item>
      </List>
    </section>
  );
}
