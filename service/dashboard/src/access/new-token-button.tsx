import { Button, NativeSelect, Stack, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { Scope } from "../api/types";
import { meQuery } from "../auth/queries";
import { ErrorNotice } from "../components/error-notice";
import { Unfolding } from "../components/unfolding";
import { useMakeToken } from "./queries";
import { Secret } from "./secret";

export const SCOPES: Record<Scope, string> = {
  read: "read",
  submit: "submit (and read)",
  admin: "admin (everything)",
};

const DAYS = [
  { value: "7", label: "7 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "a year" },
  { value: "", label: "until it is revoked" },
];

/** The scopes that a token of `scope` may give to a new token. */
function scopesWithin(scope: Scope): Scope[] {
  const scopes = Object.keys(SCOPES) as Scope[];
  return scopes.slice(0, scopes.indexOf(scope) + 1);
}

export function NewTokenButton() {
  return (
    <Unfolding
      label="New token"
      width={320}
      button={(toggle) => (
        <Button size="xs" variant="default" onClick={toggle}>
          New token
        </Button>
      )}
    >
      {(close) => <NewTokenForm onDone={close} />}
    </Unfolding>
  );
}

function NewTokenForm({ onDone }: { onDone: () => void }) {
  const { data: me } = useQuery(meQuery);
  const { mutate, data, error, isPending } = useMakeToken();
  const [name, setName] = useState("");
  const [scope, setScope] = useState<Scope>("submit");
  const [days, setDays] = useState("90");
  if (data) return <Secret secret={data.secret} onDone={onDone} />;

  function submit(event: FormEvent) {
    event.preventDefault();
    mutate({ name: name.trim(), scope, days: days === "" ? null : Number(days) });
  }

  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <TextInput
          label="Name"
          description="Purpose of the token"
          size="xs"
          maxLength={200}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <NativeSelect
          label="Scope"
          size="xs"
          value={scope}
          onChange={(event) => setScope(event.currentTarget.value as Scope)}
          data={scopesWithin(me?.scope ?? "submit").map((value) => ({ value, label: SCOPES[value] }))}
        />
        <NativeSelect
          label="Valid for"
          size="xs"
          value={days}
          onChange={(event) => setDays(event.currentTarget.value)}
          data={DAYS}
        />
        {error && <ErrorNotice error={error} />}
        <Button size="xs" type="submit" loading={isPending} disabled={name.trim() === ""}>
          Create token
        </Button>
      </Stack>
    </form>
  );
}
