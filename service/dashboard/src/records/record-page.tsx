import { Group, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import { ApiError } from "../api/errors";
import { recordQuery } from "../api/queries";
import type { RecordDetail } from "../api/types";
import { CodePane } from "../components/code-pane";
import { ErrorNotice } from "../components/error-notice";
import { Fact, Facts } from "../components/facts";
import { NotFound } from "../components/not-found";
import { Panel } from "../components/panel";
import { RelativeTime } from "../components/relative-time";
import { CertifiedTag } from "../components/tags";
import { Waiting } from "../components/waiting";
import { formatTarget } from "../format/target";
import { formatLatency, formatSpeedup } from "../format/units";
import { CertificateWords } from "./certificate-words";
import { SampleStrips, type Samples } from "./sample-strips";
import { traceLines } from "./trace";

export function RecordPage() {
  const { id = "" } = useParams();
  const { data: record, error, refetch } = useQuery(recordQuery(id));

  if (error instanceof ApiError && error.status === 404) return <NotFound what="record" />;
  if (record === undefined)
    return error ? <ErrorNotice error={error} onRetry={() => refetch()} /> : <Waiting />;
  return (
    <Stack gap="md">
      <title>{`${record.name} · Loopwright`}</title>
      <div>
        <Link to="/bests" className="link" style={{ fontSize: "0.875rem" }}>
          Best schedules
        </Link>
        <Group gap="sm">
          <Title order={1} style={{ overflowWrap: "anywhere" }}>
            {record.name}
          </Title>
          <CertifiedTag certified={record.certified} />
        </Group>
        <Text ff="monospace" fz="xs" c="var(--muted)" style={{ overflowWrap: "anywhere" }}>
          {record.workload_hash}
        </Text>
      </div>

      <Panel title="Measurement">
        <Stack gap="lg" px="md" pb="md">
          <RecordFacts record={record} />
          <SampleStrips sets={sampleSets(record)} />
        </Stack>
      </Panel>

      <Panel title="Certificate">
        <div style={{ padding: "0 1rem 1rem" }}>
          {record.certificate ? (
            <CertificateWords certificate={record.certificate} />
          ) : (
            <Text size="sm" c="var(--muted)">
              This trial was measured but not certified: only the best of a task goes through the closing race
              and the comparison of results.
            </Text>
          )}
        </div>
      </Panel>

      <Panel title="Program">
        <SimpleGrid cols={{ base: 1, md: 2 }} px="md" pb="md">
          <CodePane label="Before: unscheduled" code={record.script_before} />
          <CodePane
            label={record.is_baseline ? "After: the baseline, unchanged" : "After: scheduled"}
            code={record.script_after}
          />
        </SimpleGrid>
      </Panel>

      {record.trace && (
        <Panel title="Trace">
          <div style={{ padding: "0 1rem 1rem" }}>
            <CodePane
              label="Instructions, with what was decided"
              code={traceLines(record.trace).join("\n")}
            />
          </div>
        </Panel>
      )}
    </Stack>
  );
}

function RecordFacts({ record }: { record: RecordDetail }) {
  const { certificate } = record;
  return (
    <Facts>
      <Fact label="Latency">{formatLatency(certificate?.best_us ?? record.median_us)}</Fact>
      {certificate && <Fact label="Baseline">{formatLatency(certificate.baseline_us)}</Fact>}
      {certificate && <Fact label="Speedup">{formatSpeedup(certificate.speedup)}</Fact>}
      <Fact label="Target" title={JSON.stringify(record.target)}>
        {formatTarget(record.target)}
      </Fact>
      <Fact label="Device class" title={JSON.stringify(record.device, null, 2)}>
        {record.device_class}
      </Fact>
      <Fact label="Origin">{record.origin}</Fact>
      <Fact label="TVM">{record.tvm_version}</Fact>
      <Fact label="Measured">
        <RelativeTime time={record.created_at} />
      </Fact>
      {record.worker && <Fact label="Worker">{record.worker}</Fact>}
      {record.job_id && (
        <Fact label="Job">
          <Link to={`/jobs/${record.job_id}`} className="link">
            {record.job_id}
          </Link>
        </Fact>
      )}
    </Facts>
  );
}

/** The closing race where there was one, for its two sides were timed together; else the trial's own samples. */
function sampleSets({ certificate, run_secs }: RecordDetail): Samples[] {
  if (certificate === null) return [{ label: "This trial", runSecs: run_secs }];
  return [
    { label: "Baseline, in the closing race", runSecs: certificate.baseline_run_secs },
    { label: "This schedule, in the closing race", runSecs: certificate.best_run_secs },
    { label: "This schedule, when first measured", runSecs: run_secs },
  ];
}
