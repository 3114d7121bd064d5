import { Group } from "@mantine/core";

export function Brand() {
  return (
    <Group gap="xs" wrap="nowrap" fw={700} fz="lg">
      <img src="/favicon.svg" alt="" width={26} height={26} />
      Loopwright
    </Group>
  );
}
