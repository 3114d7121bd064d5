import { Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { Worker } from "../api/types";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { formatTarget } from "../format/target";
import { plural } from "../format/units";
import { workersQuery } from "./queries";
import { WorkerState } from "./worker-state";

/** The live workers, one per line. */
export function FleetSummary() {
  const query = useQuery(workersQuery);
  return (
    <Panel
      title="Fleet"
      aside={
        <Link to="/fleet" className="link">
          Whole fleet
        </Link>
      }
    >
      <Ready query={query}>{({ items }) => <Workers workers={items} />}</Ready>
    </Panel>
  );
}

function Workers({ workers }: { workers: Worker[] }) {
  const alive = workers.filter((worker) => worker.alive);
  return (
    <Stack gap="sm" px="md" pb="md">
      {alive.length === 0 && (
        <Text size="sm" c="var(--warn-text)">
          No worker is alive. Jobs wait until a worker joins.
        </Text>
      )}
      {alive.map((worker) => (
        <Group key={worker.id} justify="space-between" gap="xs">
          <div style={{ minWidth: 0 }}>
            <Text size="sm">{worker.id}</Text>
            <Text size="xs" c="var(--muted)">
              {`${worker.device_model} · ${formatTarget(worker.target)} · ${plural(worker.threads, "thread")}`}
            </Text>
          </div>
          <WorkerState worker={worker} />
        </Group>
      ))}
    </Stack>
  );
}
