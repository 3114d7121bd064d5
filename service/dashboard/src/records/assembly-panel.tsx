import { Button, Group, Loader, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { CodePane } from "../code/code-pane";
import { ErrorNotice } from "../components/error-notice";
import { Panel } from "../components/panel";
import { useFlag } from "../components/use-query-state";
import { assemblyQuery } from "./queries";

/** The machine code of the program, compiled on request (`?assembly=1`). */
export function AssemblyPanel({ recordId }: { recordId: string }) {
  const [wanted, setWanted] = useFlag("assembly");
  const { data, error, isFetching, refetch } = useQuery({ ...assemblyQuery(recordId), enabled: wanted });
  return (
    <Panel
      title="Machine code"
      aside={
        data === undefined && (
          <Button size="xs" variant="default" loading={isFetching} onClick={() => setWanted(true)}>
            Compile and show
          </Button>
        )
      }
    >
      <div style={{ padding: "0 1rem 1rem" }}>
        {data && (
          <CodePane
            label={data.language === "asm" ? "Assembly" : "CUDA C"}
            code={data.text}
            language={data.language}
          />
        )}
        {error && <ErrorNotice error={error} onRetry={() => refetch()} />}
        {data === undefined && !error && (
          <Group gap="xs" role="status">
            {isFetching && <Loader size="xs" />}
            <Text size="sm" c="var(--muted)">
              {isFetching
                ? "Compiling …"
                : "The service compiles the program for its target in a separate process, which takes some seconds."}
            </Text>
          </Group>
        )}
      </div>
    </Panel>
  );
}
