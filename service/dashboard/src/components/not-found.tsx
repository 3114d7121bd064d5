import { Stack, Text, Title } from "@mantine/core";
import { Link } from "react-router";

export function NotFound({ what = "page" }: { what?: string }) {
  return (
    <Stack align="center" gap="sm" py="15vh" ta="center">
      <title>Not found · Loopwright</title>
      <Title order={1}>There is no such {what}</Title>
      <Text c="var(--muted)">The address may be mistyped, or it may come from another installation.</Text>
      <Link to="/" className="link">
        To the overview
      </Link>
    </Stack>
  );
}
