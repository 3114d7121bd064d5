import { Text } from "@mantine/core";
import type { Job, Trial } from "../api/types";
import { lazyChart } from "../charts/lazy-chart";
import { Empty } from "../components/empty";
import { formatLatency, formatSpeedup, plural } from "../format/units";
import { type FirstChoices, firstChoices, runOfFirstChoices } from "./first-choices";

const HEIGHT = 240;
const FirstChoicesChart = lazyChart("first choices", () => import("./first-choices-chart"));

interface FirstChoicesPanelProps {
  job: Job;
  trials: readonly Trial[];
  hash: string;
  name: string;
}

/** How good the order is in which the rules give their starting points, before anything is measured. */
export function FirstChoicesPanel({ job, trials, hash, name }: FirstChoicesPanelProps) {
  const choices = firstChoices(trials, hash);
  return (
    <>
      <Text component="h3" size="sm" fw={600} mt="md">
        First choices of the rules
      </Text>
      {job.tasks.length > 1 && (
        <Text size="sm" c="var(--muted)">
          {runInWords(job, trials)}
        </Text>
      )}
      {choices === null ? (
        <Empty>No starting point of a rule was measured for this function.</Empty>
      ) : (
        <>
          <Text size="sm" c="var(--muted)">
            {inWords(choices)}
          </Text>
          <FirstChoicesChart choices={choices} height={HEIGHT} summary={`${name}: ${inWords(choices)}`} />
        </>
      )}
    </>
  );
}

function inWords({ seeds, failed, rank, fastestUs }: FirstChoices): string {
  const [first] = seeds;
  const took = first ? against(first.us, fastestUs) : "";
  const ran = `${plural(seeds.length, "starting point")} ran${failed > 0 ? ` and ${failed} failed` : ""}`;
  const order = rank === null ? "" : `; rank correlation of order and speed ${rank.toFixed(2)}`;
  return `${ran}${order}. The first took ${took}.`;
}

function runInWords(job: Job, trials: readonly Trial[]): string {
  const { functions, firstUs, fastestUs } = runOfFirstChoices(job, trials);
  if (functions === 0) return "No starting point of a rule was measured in this job.";
  const which =
    functions === job.tasks.length ? "all functions" : `${functions} of ${job.tasks.length} functions`;
  return `In one run of the model, the first choices for ${which} took ${against(firstUs, fastestUs)}.`;
}

/** "5.1 ms, 1.2× as long as the fastest measured (4.2 ms)". */
function against(firstUs: number, fastestUs: number): string {
  if (firstUs === fastestUs) return `${formatLatency(firstUs)}, and no trial was faster`;
  return `${formatLatency(firstUs)}, ${formatSpeedup(firstUs / fastestUs)} as long as the fastest measured (${formatLatency(fastestUs)})`;
}
