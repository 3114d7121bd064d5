import { Button, Grid, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Decisions } from "../api/types";
import { lazyChart } from "../charts/lazy-chart";
import { Empty } from "../components/empty";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { useFlag, useQueryState } from "../components/use-query-state";
import { plural } from "../format/units";
import { type Brush, brushedRows, parseBrush, tellingColumns, writeBrush } from "./brush";
import { BrushBar } from "./brush-bar";
import { ImportanceList } from "./importance-list";
import { decisionsQuery } from "./queries";
import { TrialTable } from "./trial-table";

const ParallelChart = lazyChart("parallel", () => import("./parallel-chart"));

const HEIGHT = 360;
const AXES = 8;
const MOST_AXES = 24;

/** The decisions of the trials and their latencies. Brushing an axis filters the table; the address has the filters. */
export function DecisionsPanel({ hash, deviceClass }: { hash: string; deviceClass: string }) {
  const query = useQuery(decisionsQuery(hash, deviceClass));
  return (
    <Panel title="Decisions">
      <Ready query={query}>
        {(decisions) =>
          decisions.rows.length === 0 || decisions.columns.length === 0 ? (
            <Empty>
              Only the baseline was measured on this device class, and the baseline makes no decisions.
            </Empty>
          ) : (
            <Explorer decisions={decisions} />
          )
        }
      </Ready>
    </Panel>
  );
}

function Explorer({ decisions }: { decisions: Decisions }) {
  const [allAxes, setAllAxes] = useFlag("axes");
  const [brush, setBrush] = useBrush();
  const shown = useMemo(() => tellingColumns(decisions, allAxes ? MOST_AXES : AXES), [decisions, allAxes]);
  const rows = useMemo(() => brushedRows(decisions, brush), [decisions, brush]);
  const varying = useMemo(() => tellingColumns(decisions, decisions.columns.length).length, [decisions]);
  if (shown.length === 0) {
    return (
      <Stack gap="md" pb="md">
        <Text size="sm" c="var(--muted)" px="md">
          {decisions.rows.length === 1
            ? "One trial was measured: there is nothing to compare its decisions with."
            : "All measured trials made the same decisions."}
        </Text>
        <TrialTable rows={rows} of={decisions.rows.length} />
      </Stack>
    );
  }
  return (
    <Stack gap="md" pb="md">
      <Stack gap="xs" px="md">
        <Group justify="space-between" gap="xs">
          <Text size="sm" c="var(--muted)" maw="56rem">
            Each line is a measured trial. The fastest trials have the strongest colour. Drag along an axis to
            keep only the trials that pass there.
          </Text>
          {varying > AXES && (
            <Button
              size="compact-xs"
              variant="default"
              aria-pressed={allAxes}
              onClick={() => setAllAxes(!allAxes)}
            >
              {allAxes ? `The ${AXES} that matter most` : "More axes"}
            </Button>
          )}
        </Group>
        <div style={{ overflowX: "auto" }}>
          <div style={{ minWidth: `${Math.max(36, shown.length * 5.5)}rem` }}>
            <ParallelChart
              decisions={decisions}
              shown={shown}
              brush={brush}
              onBrush={setBrush}
              height={HEIGHT}
              summary={`Parallel coordinates of ${plural(decisions.rows.length, "trial")} over ${plural(shown.length, "choice")} and the latency; ${plural(rows.length, "trial")} within the selected intervals.`}
            />
          </div>
        </div>
        <BrushBar decisions={decisions} brush={brush} onBrush={setBrush} />
      </Stack>
      <Grid gap="lg">
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <ImportanceList columns={decisions.columns} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <TrialTable rows={rows} of={decisions.rows.length} />
        </Grid.Col>
      </Grid>
    </Stack>
  );
}

function useBrush(): [Brush, (brush: Brush) => void] {
  const [params, change] = useQueryState();
  const words = params.getAll("brush").join("\n");
  const brush = useMemo(() => parseBrush(words === "" ? [] : words.split("\n")), [words]);
  return [brush, (next) => change({ brush: writeBrush(next) })];
}
