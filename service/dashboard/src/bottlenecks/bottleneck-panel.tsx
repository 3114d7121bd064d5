import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { type Bottleneck, type Bottlenecks, isFinished, type Job } from "../api/types";
import { useMay } from "../auth/queries";
import { Breakable } from "../components/breakable";
import { type Columns, DataTable } from "../components/data-table";
import { ErrorNotice } from "../components/error-notice";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { ShareBar } from "../components/share-bar";
import { useFlag } from "../components/use-query-state";
import { WorkloadName, workloadPath } from "../components/workload-name";
import { functionName } from "../format/function-name";
import { formatLatency, formatSpeedup, plural } from "../format/units";
import { effectsOf } from "../records/ablation";
import { ablationQuery, useAblate } from "../records/queries";
import classes from "./bottleneck-panel.module.css";
import {
  decisionInWords,
  functionInWords,
  leftInWords,
  libraryGainOf,
  longestOf,
  measuredInWords,
  reachedOf,
  undecidedInWords,
} from "./bottlenecks";
import { bottlenecksQuery } from "./queries";

/** Functions that are shown before the others are asked for. */
const SHOWN = 5;

/** What limits a finished job's model, which decision mattered, and where the time is left. */
export function BottleneckPanel({ job }: { job: Job }) {
  const isShown = isFinished(job.state) && job.tasks.some((task) => task.best_us !== null);
  const query = useQuery({ ...bottlenecksQuery(job.id), enabled: isShown });
  if (!isShown) return null;
  return (
    <Panel title="Bottlenecks">
      <Ready query={query}>{(found) => <Content found={found} deviceClass={job.device_class} />}</Ready>
    </Panel>
  );
}

function Content({ found, deviceClass }: { found: Bottlenecks; deviceClass: string }) {
  const longest = longestOf(found);
  const left = leftInWords(found);
  if (longest === undefined) return null;
  return (
    <>
      <dl className={classes.answers}>
        <dt>Bottleneck</dt>
        <dd>
          <Link to={workloadPath(longest.workload_hash, deviceClass)} className="link">
            <Breakable name={functionName(longest, found.functions)} />
          </Link>
          {`. ${functionInWords(longest)}`}
        </dd>
        <dt>Decision that mattered</dt>
        <dd>
          {longest.record_id === null ? (
            "Not known yet."
          ) : (
            <Decision of={longest} recordId={longest.record_id} />
          )}
        </dd>
        <dt>Time left</dt>
        <dd>{left ?? "Not known: no function has a limit that is known."}</dd>
      </dl>
      <FunctionTable functions={found.functions} deviceClass={deviceClass} />
    </>
  );
}

/** The decision of the function that takes most time, and a way to measure it. */
function Decision({ of, recordId }: { of: Bottleneck; recordId: string }) {
  const { data: ablation } = useQuery(ablationQuery(recordId));
  const maySubmit = useMay("submit");
  const start = useAblate(recordId);
  const [newest] = effectsOf(ablation?.result?.neighbours ?? []);
  const words = newest ? measuredInWords(newest) : decisionInWords(of.decision);
  const isRunning = ablation != null && !isFinished(ablation.state);
  const mayBeMeasured = words === null ? of.undecided === "unmeasured" : !words.isMeasured;
  return (
    <Stack gap={4} align="flex-start">
      <span>
        {words ? (
          <>
            <code className={classes.decision}>{words.decision}</code> {words.worth}
          </>
        ) : (
          undecidedInWords(of)
        )}
      </span>
      <Group gap="sm">
        {isRunning && (
          <Text size="sm" role="status">
            A{" "}
            <Link to={`/jobs/${ablation.job_id}`} className="link">
              job
            </Link>{" "}
            measures what each decision brings …
          </Text>
        )}
        {maySubmit && !isRunning && mayBeMeasured && (
          <Button
            size="compact-sm"
            variant="default"
            loading={start.isPending}
            onClick={() => start.mutate()}
          >
            Measure each decision
          </Button>
        )}
        <Link to={`/records/${recordId}`} className="link">
          The schedule
        </Link>
      </Group>
      {start.error && <ErrorNotice error={start.error} />}
    </Stack>
  );
}

function columnsFor(deviceClass: string): Columns<Bottleneck> {
  return [
    {
      id: "function",
      header: "Function",
      cell: ({ row: { original: each } }) => (
        <WorkloadName
          name={each.name}
          source={each.source}
          hash={each.workload_hash}
          to={workloadPath(each.workload_hash, deviceClass)}
        />
      ),
    },
    {
      id: "left",
      header: "Time left",
      meta: { numeric: true },
      cell: ({ row }) => <strong>{formatLatency(row.original.left_us)}</strong>,
    },
    {
      id: "us",
      header: "One run",
      meta: { numeric: true },
      cell: ({ row }) => formatLatency(row.original.us),
    },
    {
      id: "share",
      header: "Share of time",
      meta: { numeric: true },
      cell: ({ row }) => <ShareBar share={row.original.model_share} />,
    },
    { id: "limit", header: "Limited by", cell: ({ row }) => row.original.limit ?? "–" },
    {
      id: "reached",
      header: "Of the limit",
      meta: { numeric: true },
      cell: ({ row }) => <ShareBar share={reachedOf(row.original)} />,
    },
    {
      id: "library",
      header: "Library",
      cell: ({ row }) => <Library of={row.original} />,
    },
  ];
}

function Library({ of }: { of: Bottleneck }) {
  const gain = libraryGainOf(of);
  if (gain === null) return "–";
  return `${of.library?.name}: ${gain >= 1 ? `${formatSpeedup(gain)} faster` : `${formatSpeedup(1 / gain)} slower`}`;
}

function FunctionTable({ functions, deviceClass }: { functions: Bottleneck[]; deviceClass: string }) {
  const [all, setAll] = useFlag("functions");
  const others = functions.length - SHOWN;
  if (functions.length < 2) return null;
  return (
    <>
      <DataTable
        label="Functions by the time left"
        columns={columnsFor(deviceClass)}
        rows={all ? functions : functions.slice(0, SHOWN)}
        rowId={(each) => each.workload_hash}
      />
      {others > 0 && (
        <Group justify="center" p="sm">
          <Button variant="subtle" size="compact-sm" onClick={() => setAll(!all)}>
            {all ? "Show fewer functions" : `Show ${plural(others, "more function")}`}
          </Button>
        </Group>
      )}
    </>
  );
}
