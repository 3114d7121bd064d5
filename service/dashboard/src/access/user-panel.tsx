import { Button, NativeSelect, Stack, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { Scope, User } from "../api/types";
import { type Columns, DataTable } from "../components/data-table";
import { ErrorNotice } from "../components/error-notice";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { Tag } from "../components/tag";
import { Unfolding } from "../components/unfolding";
import { formatCount, formatScaled } from "../format/units";
import { SCOPES } from "./new-token-button";
import { useDisableUser, useMakeUser, usersQuery } from "./queries";
import { Secret } from "./secret";

const columns: Columns<User> = [
  {
    id: "name",
    header: "User",
    cell: ({ row: { original: user } }) => (
      <>
        {user.name} {user.disabled_at && <Tag tone="warn">disabled</Tag>}
      </>
    ),
  },
  { id: "role", header: "Role", cell: ({ row }) => row.original.role },
  {
    id: "jobs",
    header: "Active jobs",
    meta: { numeric: true },
    cell: ({ row }) => limit(row.original.quota.active_jobs),
  },
  {
    id: "trials",
    header: "Trials per day",
    meta: { numeric: true },
    cell: ({ row }) => limit(row.original.quota.daily_trials),
  },
  {
    id: "seconds",
    header: "Device time per day",
    meta: { numeric: true },
    cell: ({ row }) => limit(row.original.quota.daily_device_seconds, seconds),
  },
  {
    id: "bytes",
    header: "Modules per day",
    meta: { numeric: true },
    cell: ({ row }) => limit(row.original.quota.daily_bytes, bytes),
  },
  {
    id: "disable",
    header: "Action",
    meta: { numeric: true },
    cell: ({ row: { original: user } }) => user.name !== "owner" && <DisableButton user={user} />,
  },
];

function limit(value: number | null | undefined, format: (value: number) => string = formatCount): string {
  return value === null || value === undefined ? "no limit" : format(value);
}

function bytes(value: number): string {
  return formatScaled(value, "B");
}

function seconds(value: number): string {
  return `${formatCount(Math.round(value))} s`;
}

function DisableButton({ user }: { user: User }) {
  const { mutate, isPending, error } = useDisableUser();
  const verb = user.disabled_at ? "Enable" : "Disable";
  return (
    <>
      <Button
        size="compact-xs"
        variant="default"
        loading={isPending}
        aria-label={`${verb} ${user.name}`}
        onClick={() => mutate({ name: user.name, disabled: !user.disabled_at })}
      >
        {verb}
      </Button>
      {error && <ErrorNotice error={error} />}
    </>
  );
}

/** Lists users and their limits; `loopwright user change` sets limits. */
export function UserPanel() {
  const users = useQuery(usersQuery);
  return (
    <Panel
      title="Users"
      aside={
        <Unfolding
          label="New user"
          width={320}
          button={(toggle) => (
            <Button size="xs" variant="default" onClick={toggle}>
              New user
            </Button>
          )}
        >
          {(close) => <NewUserForm onDone={close} />}
        </Unfolding>
      }
    >
      <Ready query={users}>
        {({ items }) => (
          <DataTable label="Users" columns={columns} rows={items} rowId={(user) => user.name} />
        )}
      </Ready>
    </Panel>
  );
}

function NewUserForm({ onDone }: { onDone: () => void }) {
  const { mutate, data, error, isPending } = useMakeUser();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Scope>("submit");
  if (data) return <Secret secret={data.secret} onDone={onDone} />;

  function submit(event: FormEvent) {
    event.preventDefault();
    mutate({ name: name.trim(), role });
  }

  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <TextInput
          label="Name"
          description="Lowercase letters, digits, dots and dashes"
          size="xs"
          maxLength={40}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <NativeSelect
          label="Role"
          size="xs"
          value={role}
          onChange={(event) => setRole(event.currentTarget.value as Scope)}
          data={Object.entries(SCOPES).map(([value, label]) => ({ value, label }))}
        />
        {error && <ErrorNotice error={error} />}
        <Button size="xs" type="submit" loading={isPending} disabled={name.trim() === ""}>
          Create user
        </Button>
      </Stack>
    </form>
  );
}
