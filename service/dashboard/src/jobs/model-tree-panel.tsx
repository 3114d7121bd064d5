import { SimpleGrid, Text } from "@mantine/core";
import { useMemo } from "react";
import type { Job } from "../api/types";
import { lazyChart } from "../charts/lazy-chart";
import { Panel } from "../components/panel";
import { formatLatency, formatShare } from "../format/units";
import { modelTree, treeInWords } from "./model-tree";

const HEIGHT = 300;

const TreemapChart = lazyChart("treemap", () => import("./treemap-chart"));

/** The model's time by its modules, before and after; nothing while a latency is missing, or for one function. */
export function ModelTreePanel({ job }: { job: Job }) {
  const [before, after] = useMemo(
    () => [modelTree(job.tasks, "baseline_us"), modelTree(job.tasks, "best_us")],
    [job.tasks],
  );
  if (job.model === null || job.tasks.length < 2) return null;
  const names = before.map(({ name }) => name);
  const states = [
    { title: "Before", us: job.model.baseline_us, tree: before },
    { title: "After", us: job.model.best_us, tree: after },
  ];
  return (
    <Panel title="Where the time goes" aside={<span className="muted">by module, functions together</span>}>
      <SimpleGrid cols={{ base: 1, md: 2 }} px="md" pb="md">
        {states.map(({ title, us, tree }) => (
          <div key={title} style={{ minWidth: 0 }}>
            <Text size="sm" mb={4}>
              {title}: <strong>{formatLatency(us)}</strong>
            </Text>
            <TreemapChart
              tree={tree}
              names={names}
              height={HEIGHT}
              summary={`${title}, ${formatLatency(us)}: ${treeInWords(tree, formatShare)}.`}
            />
          </div>
        ))}
      </SimpleGrid>
    </Panel>
  );
}
