import { useInfiniteQuery } from "@tanstack/react-query";
import type { AuditEntry } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { Empty } from "../components/empty";
import { MoreButton } from "../components/more-button";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { RelativeTime } from "../components/relative-time";
import { Tag } from "../components/tag";
import { auditQuery } from "./queries";

const columns: Columns<AuditEntry> = [
  { id: "at", header: "When", cell: ({ row }) => <RelativeTime time={row.original.at} /> },
  { id: "user", header: "User", cell: ({ row }) => row.original.user },
  { id: "action", header: "Action", cell: ({ row }) => row.original.action.replaceAll("_", " ") },
  {
    id: "object",
    header: "Object",
    cell: ({ row }) => <code style={{ overflowWrap: "anywhere" }}>{row.original.object}</code>,
  },
  {
    id: "status",
    header: "Outcome",
    cell: ({ row: { original: entry } }) =>
      entry.status < 400 ? <Tag tone="good">done</Tag> : <Tag tone="warn">refused, {entry.status}</Tag>,
  },
  { id: "address", header: "Address", cell: ({ row }) => row.original.address },
];

/** Lists requested changes, by whom, and whether they were refused. */
export function AuditPanel() {
  const pages = useInfiniteQuery(auditQuery);
  return (
    <Panel title="Audit log">
      <Ready query={pages}>
        {({ pages: loaded }) => {
          const entries = loaded.flatMap((page) => page.items);
          return entries.length > 0 ? (
            <DataTable
              label="Audit log"
              columns={columns}
              rows={entries}
              rowId={(entry) => `${entry.at} ${entry.token_id} ${entry.object}`}
            />
          ) : (
            <Empty>No change has been requested yet.</Empty>
          );
        }}
      </Ready>
      <MoreButton pages={pages} />
    </Panel>
  );
}
