import type { ReactNode } from "react";
import { Link } from "react-router";
import type { RecordDetail } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { SandboxTag } from "../components/sandbox-tag";
import { CertifiedTag } from "../components/tags";
import { WorkloadName, workloadPath } from "../components/workload-name";
import { formatDeviceState } from "../format/device-state";
import { formatTarget } from "../format/target";
import { formatAbsolute } from "../format/time";
import { formatLatency, formatSpeedup } from "../format/units";
import { relativeSpeed } from "../records/race";

interface FactRow {
  label: string;
  left: ReactNode;
  right: ReactNode;
}

const FACTS: [label: string, of: (record: RecordDetail) => ReactNode][] = [
  [
    "Workload",
    (record) => (
      <WorkloadName
        name={record.name}
        hash={record.workload_hash}
        to={workloadPath(record.workload_hash, record.device_class)}
      />
    ),
  ],
  [
    "Record",
    (record) => (
      <Link to={`/records/${record.id}`} className="link">
        <code>{record.id}</code>
      </Link>
    ),
  ],
  ["Latency of the trial", (record) => formatLatency(record.median_us)],
  ["Certificate", (record) => <CertifiedTag certified={record.certified} />],
  ["Origin", (record) => record.origin],
  ["Target", (record) => formatTarget(record.target)],
  ["Device class", (record) => <code>{record.device_class}</code>],
  ["Worker", (record) => record.worker ?? "–"],
  ["GPU", (record) => (record.device_state ? formatDeviceState(record.device_state) : "–")],
  ["Sandbox", (record) => <SandboxTag level={record.sandbox} />],
  ["Measured", (record) => formatAbsolute(new Date(record.created_at))],
  ["TVM", (record) => record.tvm_version],
];

const columns: Columns<FactRow> = [
  { id: "label", header: "Fact", cell: ({ row }) => <span className="muted">{row.original.label}</span> },
  { id: "left", header: "Left", cell: ({ row }) => row.original.left },
  { id: "right", header: "Right", cell: ({ row }) => row.original.right },
];

/** What is known of two records, row by row: first how they compare. */
export function FactTable({ left, right }: { left: RecordDetail; right: RecordDetail }) {
  const one = relativeSpeed(left, right);
  const other = relativeSpeed(right, left);
  const where = one.raced ? "in the closing race" : "when first measured";
  const rows: FactRow[] = [
    {
      label: `Relative speed, ${where}`,
      left: formatSpeedup(one.value, one.interval),
      right: formatSpeedup(other.value, other.interval),
    },
    { label: `Latency, ${where}`, left: formatLatency(one.us[0]), right: formatLatency(one.us[1]) },
    ...FACTS.map(([label, of]) => ({ label, left: of(left), right: of(right) })),
  ];
  return <DataTable label="Facts" columns={columns} rows={rows} rowId={(row) => row.label} />;
}
