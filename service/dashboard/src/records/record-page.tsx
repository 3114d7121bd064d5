import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import type { RecordDetail } from "../api/types";
import { Breakable } from "../components/breakable";
import { Fact, Facts } from "../components/facts";
import { PageHead } from "../components/page-head";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { CertifiedTag, RegressedTag } from "../components/tags";
import { workloadPath } from "../components/workload-name";
import { functionName } from "../format/function-name";
import { formatLatency, formatSpeedup } from "../format/units";
import { AblationPanel } from "./ablation-panel";
import { AssemblyPanel } from "./assembly-panel";
import { CertificateWords } from "./certificate-words";
import { CompareButton } from "./compare-button";
import { ImportedWords } from "./imported-words";
import { LineagePanel } from "./lineage-panel";
import { ProgramPanel } from "./program-panel";
import { Provenance } from "./provenance";
import { recordQuery } from "./queries";
import { RejectedContenders } from "./rejected-contenders";
import { ReproducePanel } from "./reproduce-panel";
import { SampleStrips } from "./sample-strips";
import { sampleSets } from "./samples";

export default function RecordPage() {
  const { id = "" } = useParams();
  const query = useQuery(recordQuery(id));
  return (
    <Ready query={query} what="record">
      {(record) => <RecordView key={id} record={record} />}
    </Ready>
  );
}

/** A schedule: its measurements, certificate, program and provenance. */
function RecordView({ record }: { record: RecordDetail }) {
  return (
    <Stack gap="md">
      <PageHead
        title={functionName(record)}
        up={{ to: workloadPath(record.workload_hash, record.device_class), label: "Workload" }}
        tags={
          record.certificate?.regressed_at ? <RegressedTag /> : <CertifiedTag certified={record.certified} />
        }
        actions={<CompareButton record={record} />}
      >
        <Link
          to={workloadPath(record.workload_hash, record.device_class)}
          className="link"
          style={{ overflowWrap: "anywhere", fontSize: "0.75rem" }}
        >
          <code>{record.workload_hash}</code>
        </Link>
        {record.source && (
          <Text span fz="xs" c="var(--muted)" ml="sm">
            <Breakable name={record.name} />
          </Text>
        )}
      </PageHead>

      <Panel title="Measurement">
        <Stack gap="lg" px="md" pb="md">
          <Speed record={record} />
          <SampleStrips sets={sampleSets(record)} />
        </Stack>
      </Panel>

      <Panel title="Certificate">
        <Stack gap="sm" px="md" pb="md" maw="62rem">
          {record.certificate ? (
            <>
              <CertificateWords certificate={record.certificate} />
              <RejectedContenders contenders={record.certificate.rejected} />
            </>
          ) : (
            <Text size="sm" c="var(--muted)">
              This trial was measured but not certified. Only the best schedule of a task, as found by a
              closing race and a comparison of results, is certified.
            </Text>
          )}
          {record.imported_certificate && <ImportedWords imported={record.imported_certificate} />}
        </Stack>
      </Panel>

      {!record.is_baseline && <AblationPanel record={record} />}
      <ProgramPanel record={record} />
      <AssemblyPanel record={record} />

      <Panel title="Provenance">
        <div style={{ padding: "0 1rem 1rem" }}>
          <Provenance record={record} />
        </div>
      </Panel>
      {!record.is_baseline && <LineagePanel record={record} />}
      <ReproducePanel reproduce={record.reproduce} />
    </Stack>
  );
}

function Speed({ record: { certificate, median_us } }: { record: RecordDetail }) {
  return (
    <Facts>
      <Fact label="Latency">{formatLatency(certificate?.best_us ?? median_us)}</Fact>
      {certificate && <Fact label="Baseline">{formatLatency(certificate.baseline_us)}</Fact>}
      {certificate && <Fact label="Speedup">{formatSpeedup(certificate.speedup, certificate.interval)}</Fact>}
    </Facts>
  );
}
