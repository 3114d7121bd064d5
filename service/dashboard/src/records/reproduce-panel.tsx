import { SimpleGrid, Text } from "@mantine/core";
import type { RecordDetail } from "../api/types";
import { Command } from "../components/command";
import { Panel } from "../components/panel";

/** The lines that find this schedule again. */
export function ReproducePanel({ reproduce }: { reproduce: RecordDetail["reproduce"] }) {
  return (
    <Panel title="Reproduce">
      <div style={{ padding: "0 1rem 1rem" }}>
        {reproduce === null ? (
          <Text size="sm" c="var(--muted)">
            The record was imported: nobody here knows how it was found. Its trace gives the same program
            again.
          </Text>
        ) : (
          <>
            <Text size="sm" c="var(--muted)" mb="sm" maw="52rem">
              The same module, target, seed and budget, searched anew. Timings are never the same twice, so
              the search may take another way.
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
