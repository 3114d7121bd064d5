import { Paper, Stack, Text } from "@mantine/core";
import { useDebouncedCallback, useDebouncedValue } from "@mantine/hooks";
import { useCallback, useState } from "react";
import { DownloadButton } from "../components/download-button";
import { ErrorNotice } from "../components/error-notice";
import { PageHead } from "../components/page-head";
import { useQueryState } from "../components/use-query-state";
import { parseSorting, writeSorting } from "../components/use-sorting";
import { VirtualTable } from "../components/virtual-table";
import { Waiting } from "../components/waiting";
import { formatCount } from "../format/units";
import { columns } from "./columns";
import { FilterBar } from "./filter-bar";
import { useChunks } from "./use-chunks";
import { csvPath, DEFAULT_SORT, viewOf } from "./view";

/** Dragging the scroll bar passes thousands of rows; only rows at which it rests are requested. */
const REST_MS = 60;
const REMEMBER_MS = 300;

/** The list of best schedules. Only the visible part is loaded, and the address contains its position. */
export default function BestsPage() {
  const [params, change] = useQueryState();
  const view = viewOf(params);
  const top = Math.max(0, Number.parseInt(params.get("at") ?? "0", 10) || 0);
  const [shown, setShown] = useState({ top, first: top, last: top });
  const [rested] = useDebouncedValue(shown, REST_MS);
  const { total, rowAt, outdated, failed } = useChunks(view, rested.first, rested.last);

  const remember = useDebouncedCallback((row: number) => change({ at: row === 0 ? null : row }), REMEMBER_MS);
  const onView = useCallback(
    (top: number, first: number, last: number) => {
      setShown({ top, first, last });
      remember(top);
    },
    [remember],
  );
  const sorting = parseSorting(params.get("sort") ?? DEFAULT_SORT);
  return (
    <Stack gap="md">
      <PageHead
        title="Best schedules"
        actions={
          <DownloadButton path={csvPath(view)} fileName="best-schedules.csv">
            Download CSV
          </DownloadButton>
        }
      >
        The fastest certified schedule of each workload on each device class.
      </PageHead>
      <FilterBar />
      {failed && <ErrorNotice error={failed.error} onRetry={() => failed.refetch()} />}
      {total === undefined && !failed && <Waiting />}
      {total === 0 && <NothingFound narrowed={Boolean(view.q || view.op || view.device_class)} />}
      {total !== undefined && total > 0 && (
        <>
          <Paper withBorder bg="var(--surface)" style={{ minWidth: 0 }}>
            <VirtualTable
              label="Best schedules"
              columns={columns}
              list={JSON.stringify(view)}
              total={total}
              rowAt={rowAt}
              rowId={(best) => `${best.workload_hash} ${best.device_class}`}
              busy={outdated}
              sorting={sorting}
              onSortingChange={(updater) => {
                const next = typeof updater === "function" ? updater(sorting) : updater;
                change({ sort: writeSorting(next), at: null }, true);
              }}
              top={top}
              onView={onView}
            />
          </Paper>
          <Text size="sm" c="var(--muted)" className="numeric" role="status">
            {`From row ${formatCount(Math.min(shown.top + 1, total))} of ${formatCount(total)}`}
          </Text>
        </>
      )}
    </Stack>
  );
}

function NothingFound({ narrowed }: { narrowed: boolean }) {
  return (
    <Paper withBorder p="lg" bg="var(--surface)">
      <Text>
        {narrowed
          ? "No certified schedule matches. The search covers parts of models, names, ops and the beginnings of digests."
          : "No schedule has been certified yet. Submit a job: this view lists the certified schedules of jobs that succeed."}
      </Text>
    </Paper>
  );
}
