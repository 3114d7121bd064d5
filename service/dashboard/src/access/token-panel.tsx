import { Button, Checkbox, Group } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Token } from "../api/types";
import { useMay } from "../auth/queries";
import { type Columns, DataTable } from "../components/data-table";
import { ErrorNotice } from "../components/error-notice";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { RelativeTime } from "../components/relative-time";
import { formatAbsolute } from "../format/time";
import { NewTokenButton } from "./new-token-button";
import { tokensQuery, useRevokeToken } from "./queries";

const KINDS: Record<Token["kind"], string> = {
  owner: "owner's token",
  token: "token",
  session: "signed-in browser",
  guest: "guest link",
};

const columns: Columns<Token> = [
  { id: "name", header: "Name", cell: ({ row }) => row.original.name },
  { id: "user", header: "User", cell: ({ row }) => row.original.user },
  { id: "kind", header: "Kind", cell: ({ row }) => KINDS[row.original.kind] },
  { id: "scope", header: "Scope", cell: ({ row }) => row.original.scope },
  {
    id: "used",
    header: "Last used",
    cell: ({ row: { original: token } }) => (token.used_at ? <RelativeTime time={token.used_at} /> : "never"),
  },
  {
    id: "expires",
    header: "Valid until",
    cell: ({ row: { original: token } }) =>
      token.expires_at ? formatAbsolute(new Date(token.expires_at)) : "no expiry",
  },
  {
    id: "revoke",
    header: "Action",
    meta: { numeric: true },
    cell: ({ row: { original: token } }) => token.kind !== "owner" && <RevokeButton token={token} />,
  },
];

function RevokeButton({ token }: { token: Token }) {
  const { mutate, isPending, error } = useRevokeToken();
  return (
    <>
      <Button
        size="compact-xs"
        variant="default"
        loading={isPending}
        aria-label={`Revoke ${token.name}`}
        onClick={() => mutate(token.id)}
      >
        Revoke
      </Button>
      {error && <ErrorNotice error={error} />}
    </>
  );
}

/** Lists the tokens, signed-in browsers and guest links that are valid now. */
export function TokenPanel() {
  const [all, setAll] = useState(false);
  const isAdmin = useMay("administer");
  const tokens = useQuery(tokensQuery(all));
  return (
    <Panel
      title="Tokens"
      aside={
        <Group gap="md">
          {isAdmin && (
            <Checkbox
              label="All users"
              size="xs"
              checked={all}
              onChange={(event) => setAll(event.currentTarget.checked)}
            />
          )}
          <NewTokenButton />
        </Group>
      }
    >
      <Ready query={tokens}>
        {({ items }) => (
          <DataTable
            label="Tokens"
            columns={columns}
            rows={items.filter(isValid)}
            rowId={(token) => token.id}
          />
        )}
      </Ready>
    </Panel>
  );
}

function isValid(token: Token): boolean {
  return (
    token.revoked_at === null &&
    (token.expires_at === null || new Date(token.expires_at).getTime() > Date.now())
  );
}
