import { ActionIcon, Button, Group, NativeSelect, Stack, Text, TextInput, Tooltip } from "@mantine/core";
import { useState } from "react";
import { useLocation } from "react-router";
import { CopyText } from "../components/copy-text";
import { ErrorNotice } from "../components/error-notice";
import { ShareIcon } from "../components/icons";
import { Unfolding } from "../components/unfolding";
import { formatAbsolute } from "../format/time";
import { useGuestLink, useMay } from "./queries";

const DAYS = [1, 7, 30, 365];

/** Creates a guest link to the current view, if the service admits guests. */
export function ShareButton() {
  const mayInvite = useMay("invite");
  if (!mayInvite) return null;
  return (
    <Unfolding
      label="Share a read-only link"
      width={340}
      button={(toggle) => (
        <Tooltip label="Share a read-only link">
          <ActionIcon
            variant="subtle"
            color="gray"
            size="lg"
            aria-label="Share a read-only link"
            onClick={toggle}
          >
            <ShareIcon />
          </ActionIcon>
        </Tooltip>
      )}
    >
      {() => <ShareForm />}
    </Unfolding>
  );
}

function ShareForm() {
  const { pathname, search } = useLocation();
  const [days, setDays] = useState("7");
  const { mutate, data, isPending, error } = useGuestLink();
  return (
    <Stack gap="sm">
      <Text size="sm">
        Anyone who has the link can read everything on this service that is not private, and change nothing.
        The link opens this view.
      </Text>
      <Group gap="xs" align="flex-end">
        <NativeSelect
          label="Valid for"
          size="xs"
          value={days}
          onChange={(event) => setDays(event.currentTarget.value)}
          data={DAYS.map((count) => ({
            value: String(count),
            label: count === 1 ? "1 day" : `${count} days`,
          }))}
        />
        <Button size="xs" loading={isPending} onClick={() => mutate(Number(days))}>
          Create link
        </Button>
      </Group>
      {error && <ErrorNotice error={error} />}
      {data && (
        <>
          <TextInput label="Link" size="xs" readOnly value={addressFor(pathname + search, data.token)} />
          <Group justify="space-between">
            <Text size="xs" c="var(--muted)">
              Expires on {formatAbsolute(new Date(data.expires_at))}
            </Text>
            <CopyText text={addressFor(pathname + search, data.token)} what="the read-only link" />
          </Group>
        </>
      )}
    </Stack>
  );
}

/** The address of a view of this service, with a token. */
function addressFor(path: string, token: string): string {
  const url = new URL(path, window.location.origin);
  url.hash = new URLSearchParams({ guest: token }).toString();
  return url.href;
}
