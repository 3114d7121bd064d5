import { Group, NativeSelect, Paper, Stack, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import type { JobState } from "../api/types";
import { DataTable } from "../components/data-table";
import { MoreButton } from "../components/more-button";
import { PageHead } from "../components/page-head";
import { Ready } from "../components/ready";
import { useQueryState } from "../components/use-query-state";
import { FleetLine } from "../fleet/fleet-line";
import { jobColumns } from "./columns";
import { FirstJob } from "./first-job";
import { jobsQuery } from "./queries";

const STATES: readonly JobState[] = ["queued", "running", "succeeded", "partly", "failed", "cancelled"];

export default function JobsPage() {
  const [params, change] = useQueryState();
  const state = STATES.find((known) => known === params.get("state"));
  const pages = useInfiniteQuery(jobsQuery(state));
  return (
    <Stack gap="md">
      <PageHead title="Jobs">
        <FleetLine />
      </PageHead>
      <Group>
        <NativeSelect
          label="State"
          value={state ?? ""}
          onChange={(event) => change({ state: event.currentTarget.value }, true)}
          data={[{ value: "", label: "All states" }, ...STATES]}
        />
      </Group>
      <Ready query={pages}>
        {(data) => {
          const jobs = data.pages.flatMap((page) => page.items);
          if (jobs.length === 0) return state === undefined ? <FirstJob /> : <NoneInState state={state} />;
          return (
            <Paper withBorder bg="var(--surface)">
              <DataTable label="Jobs" columns={jobColumns} rows={jobs} rowId={(job) => job.id} />
              <MoreButton pages={pages} />
            </Paper>
          );
        }}
      </Ready>
    </Stack>
  );
}

function NoneInState({ state }: { state: JobState }) {
  return (
    <Paper withBorder p="lg" bg="var(--surface)">
      <Text>No job is {state}.</Text>
    </Paper>
  );
}
