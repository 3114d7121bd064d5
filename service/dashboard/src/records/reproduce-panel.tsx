import { SimpleGrid, Text } from "@mantine/core";
import type { RecordDetail } from "../api/types";
import { Command } from "../components/command";
import { Panel } from "../components/panel";

/** Lines that repeat the search of this schedule. */
export function ReproducePanel({ reproduce }: { reproduce: RecordDetail["reproduce"] }) {
  return (
    <Panel title="Reproduce">
      <div style={{ padding: "0 1rem 1rem" }}>
        {reproduce === null ? (
          <Text size="sm" c="var(--muted)">
            The record was imported, so this service does not know which search found it. Applying the trace
            gives the same program.
          </Text>
        ) : (
          <>
            <Text size="sm" c="var(--muted)" mb="sm" maw="52rem">
              These lines repeat the search with the same module, target, seed and budget. Timings vary
              between runs, so the search may find another schedule.
            </Text>
            <SimpleGrid cols={{ base: 1, md: 2 }}>
              <Command label="Command line" text={reproduce.cli.join("\n")} />
              <Command label="Python" text={reproduce.sdk.join("\n")} />
            </SimpleGrid>
          </>
        )}
      </div>
    </Panel>
  );
}
