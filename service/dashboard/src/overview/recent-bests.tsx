import type { BestSchedule } from "../api/types";
import { columns } from "../bests/columns";
import { DataTable } from "../components/data-table";
import { Empty } from "../components/empty";

const MOST = 6;
const SHOWN = new Set(["name", "op", "device", "baseline", "best", "speedup", "peak", "created"]);
const shown = columns.filter(({ id }) => id !== undefined && SHOWN.has(id));

/** Of the newest certified bests those that gain most. */
export function RecentBests({ rows }: { rows: BestSchedule[] }) {
  if (rows.length === 0) return <Empty>No schedule has been certified yet.</Empty>;
  return (
    <DataTable
      label="Recent bests"
      columns={shown}
      rows={rows.slice(0, MOST)}
      rowId={(row) => `${row.workload_hash} ${row.device_class}`}
    />
  );
}
