import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import type { RecordDetail } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { SandboxTag } from "../components/sandbox-tag";
import { CertifiedTag } from "../components/tags";
import { WorkloadName, workloadPath } from "../components/workload-name";
import { formatDeviceState } from "../format/device-state";
import { formatTarget, machineOf } from "../format/target";
import { formatAbsolute } from "../format/time";
import { formatLatency, formatSpeedup, plural } from "../format/units";
import { FIRST_MEASURED, relativeSpeed } from "../records/race";

interface FactRow {
  label: string;
  left: ReactNode;
  right: ReactNode;
}

type Fact = [
  label: string,
  text: (record: RecordDetail) => string,
  cell?: (record: RecordDetail) => ReactNode,
];

const FACTS: Fact[] = [
  [
    "Workload",
    (record) => `${record.workload_hash} ${record.device_class}`,
    (record) => (
      <WorkloadName
        name={record.name}
        source={record.source}
        hash={record.workload_hash}
        to={workloadPath(record.workload_hash, record.device_class)}
      />
    ),
  ],
  [
    "Record",
    (record) => record.id,
    (record) => (
      <Link to={`/records/${record.id}`} className="link">
        <code>{record.id}</code>
      </Link>
    ),
  ],
  [
    "Certificate",
    (record) => String(record.certified),
    (record) => <CertifiedTag certified={record.certified} />,
  ],
  ["Origin", (record) => record.origin],
  ["Target", (record) => formatTarget(record.target)],
  [
    "Device class",
    (record) => record.device_class,
    (record) => (
      <>
        {machineOf(record)} <code>{record.device_class}</code>
      </>
    ),
  ],
  ["Worker", (record) => record.worker ?? "–"],
  ["GPU", (record) => (record.device_state ? formatDeviceState(record.device_state) : "–")],
  ["Sandbox", (record) => String(record.sandbox), (record) => <SandboxTag level={record.sandbox} />],
  ["Measured", (record) => formatAbsolute(new Date(record.created_at))],
  ["TVM", (record) => record.tvm_version],
];

const columns: Columns<FactRow> = [
  { id: "label", header: "Fact", cell: ({ row }) => <span className="muted">{row.original.label}</span> },
  { id: "left", header: "Left", cell: ({ row }) => row.original.left },
  { id: "right", header: "Right", cell: ({ row }) => row.original.right },
];

/** What is known of two records: first how they compare, then what differs; what is equal is folded away. */
export function FactTable({ left, right }: { left: RecordDetail; right: RecordDetail }) {
  const one = relativeSpeed(left, right);
  const other = relativeSpeed(right, left);
  const where = one.raced ? "in the closing race" : FIRST_MEASURED;
  const latency = (how: string, us: readonly (number | null)[]): FactRow => ({
    label: `Latency, ${how}`,
    left: formatLatency(us[0]),
    right: formatLatency(us[1]),
  });
  const rows: FactRow[] = [
    {
      label: `Relative speed, ${where}`,
      left: formatSpeedup(one.value, one.interval),
      right: formatSpeedup(other.value, other.interval),
    },
    latency(where, one.us),
    ...(one.raced ? [latency(FIRST_MEASURED, [left.median_us, right.median_us])] : []),
  ];
  const equal: FactRow[] = [];
  for (const [label, text, cell = text] of FACTS) {
    (text(left) === text(right) ? equal : rows).push({ label, left: cell(left), right: cell(right) });
  }
  return (
    <>
      <DataTable label="Facts" columns={columns} rows={rows} rowId={(row) => row.label} />
      {equal.length > 0 && (
        <details>
          <Text component="summary" size="sm" px="md" py="xs" style={{ cursor: "pointer" }}>
            {`${plural(equal.length, "fact is", "facts are")} equal on both sides`}
          </Text>
          <DataTable label="Equal facts" columns={columns} rows={equal} rowId={(row) => row.label} />
        </details>
      )}
    </>
  );
}
