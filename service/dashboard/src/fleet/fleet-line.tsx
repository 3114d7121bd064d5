import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { formatTarget } from "../format/target";
import { plural } from "../format/units";
import { workersQuery } from "./queries";

/** One line about the workers that get work. */
export function FleetLine() {
  const { data } = useQuery(workersQuery);
  if (data === undefined) return null;
  const alive = data.items.filter((worker) => worker.alive);
  if (alive.length === 0) {
    return (
      <Text size="sm" c="var(--warn-text)">
        No worker is alive. Jobs wait until a worker joins.
      </Text>
    );
  }
  const ready = alive.filter(({ quarantine, drain }) => !quarantine && !drain);
  if (ready.length === 0) {
    return (
      <Text size="sm" c="var(--warn-text)">
        No worker is ready: all are in quarantine or drained. Jobs wait until one is ready again.
      </Text>
    );
  }
  const targets = [...new Set(ready.map((worker) => formatTarget(worker.target)))];
  return (
    <Text size="sm" c="var(--muted)">
      {plural(ready.length, "worker")} ready: {targets.join(", ")}
    </Text>
  );
}
