import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { CopyText } from "../components/copy-text";

/** Shows a new token, this once. */
export function Secret({ secret, onDone }: { secret: string; onDone: () => void }) {
  return (
    <Stack gap="xs">
      <TextInput label="The new token" size="xs" readOnly value={secret} />
      <Text size="xs" c="var(--muted)">
        Copy the token now. The service cannot show it again.
      </Text>
      <Group justify="flex-end">
        <CopyText text={secret} what="the new token" />
        <Button size="compact-xs" data-autofocus onClick={onDone}>
          Done
        </Button>
      </Group>
    </Stack>
  );
}
