import { Group, NativeSelect, Paper, Stack, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import type { JobState } from "../api/types";
import { DataTable } from "../components/data-table";
import { MoreButton } from "../components/more-button";
import { PageHead } from "../components/page-head";
import { Ready } from "../components/ready";
import { SearchField } from "../components/search-field";
import { useQueryState } from "../components/use-query-state";
import { FleetLine } from "../fleet/fleet-line";
import { jobColumns } from "./columns";
import { FirstJob } from "./first-job";
import { type JobFilter, type JobSort, jobsQuery } from "./queries";

const STATES: readonly JobState[] = ["queued", "running", "succeeded", "partly", "failed", "cancelled"];

const SORTS: readonly { value: JobSort; label: string }[] = [
  { value: "created", label: "Newest first" },
  { value: "gain", label: "Most time gained first" },
  { value: "name", label: "By name" },
];

const DAYS = [1, 7, 30] as const;
const WITHIN = { 1: "In the last day", 7: "In the last week", 30: "In the last month" } as const;

export default function JobsPage() {
  const [params, change] = useQueryState();
  const state = STATES.find((known) => known === params.get("state"));
  const filter: JobFilter = {
    state,
    q: params.get("q") ?? "",
    owner: params.get("owner") ?? "",
    days: DAYS.find((known) => String(known) === params.get("days")) ?? 0,
    tag: params.get("tag") ?? "",
    sort: SORTS.find(({ value }) => value === params.get("sort"))?.value,
  };
  const narrowed = Boolean(filter.q || filter.owner || filter.days || filter.tag);
  const pages = useInfiniteQuery(jobsQuery(filter));
  return (
    <Stack gap="md">
      <PageHead title="Jobs">
        <FleetLine />
      </PageHead>
      <Group gap="xs" align="flex-end">
        <SearchField
          label="Search"
          placeholder="name, part of a model, or id"
          value={filter.q ?? ""}
          onSearch={(q) => change({ q })}
        />
        <SearchField
          label="Owner"
          placeholder="user"
          value={filter.owner ?? ""}
          onSearch={(owner) => change({ owner })}
          maw="12rem"
        />
        <SearchField
          label="Tag"
          placeholder="whole word"
          value={filter.tag ?? ""}
          onSearch={(tag) => change({ tag })}
          maw="12rem"
        />
        <NativeSelect
          label="State"
          value={state ?? ""}
          onChange={(event) => change({ state: event.currentTarget.value }, true)}
          data={[{ value: "", label: "All states" }, ...STATES]}
        />
        <NativeSelect
          label="Submitted"
          value={filter.days || ""}
          onChange={(event) => change({ days: event.currentTarget.value }, true)}
          data={[
            { value: "", label: "Any time" },
            ...DAYS.map((days) => ({ value: String(days), label: WITHIN[days] })),
          ]}
        />
        <NativeSelect
          label="Order"
          value={filter.sort ?? "created"}
          onChange={({ currentTarget: { value } }) =>
            change({ sort: value === "created" ? null : value }, true)
          }
          data={[...SORTS]}
        />
      </Group>
      <Ready query={pages}>
        {(data) => {
          const jobs = data.pages.flatMap((page) => page.items);
          if (jobs.length === 0)
            return narrowed || state ? <None state={narrowed ? undefined : state} /> : <FirstJob />;
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

function None({ state }: { state: JobState | undefined }) {
  return (
    <Paper withBorder p="lg" bg="var(--surface)">
      <Text>{state ? `No job is in the state ${state}.` : "No job matches."}</Text>
    </Paper>
  );
}
