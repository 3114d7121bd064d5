import { TreemapChart as Treemap } from "echarts/charts";
import { TooltipComponent } from "echarts/components";
import { use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { useMemo } from "react";
import { Chart } from "../charts/chart";
import { escapeHtml, type Ink, tooltipInk, useInk } from "../charts/ink";
import { formatLatency, formatShare } from "../format/units";
import type { Node } from "./model-tree";

use([Treemap, TooltipComponent, SVGRenderer]);

/** Opacity of areas, as two digits: names stay legible on them. */
const TINT = "38";

interface TreemapChartProps {
  tree: Node[];
  /** The names of the first level: the same have the same colour in all plots of a model. */
  names: string[];
  height: number;
  summary: string;
}

/** Areas in proportion to time, of modules within modules. A click on a module shows it alone. */
export default function TreemapChart({ tree, names, height, summary }: TreemapChartProps) {
  const ink = useInk();
  const option = useMemo(() => chartOption(tree, names, ink), [tree, names, ink]);
  return <Chart option={option} height={height} summary={summary} />;
}

function chartOption(tree: Node[], names: string[], ink: Ink) {
  const whole = tree.reduce((sum, { value }) => sum + value, 0);
  const colour = (name: string) => ink.series[names.indexOf(name) % ink.series.length] ?? ink.faint;
  const level = { itemStyle: { borderColor: ink.surface, borderWidth: 1, gapWidth: 1 } };
  return {
    animation: false,
    tooltip: {
      ...tooltipInk(ink),
      formatter: ({ treePathInfo, value }: { treePathInfo: { name: string }[]; value: number }) => {
        const path = treePathInfo.map(({ name }) => name).filter(Boolean);
        return `${escapeHtml(path.join("."))}<br>${formatLatency(value)}, ${formatShare(value / whole)}`;
      },
    },
    series: [
      {
        type: "treemap",
        name: "model",
        data: tree.map((node) => ({ ...node, itemStyle: { color: `${colour(node.name)}${TINT}` } })),
        top: 0,
        left: 0,
        right: 0,
        bottom: 24,
        roam: false,
        itemStyle: { borderColor: ink.surface },
        leafDepth: 3,
        drillDownIcon: "",
        breadcrumb: {
          bottom: 0,
          height: 18,
          itemStyle: { color: ink.faint, textStyle: { color: ink.text } },
        },
        label: { color: ink.text, fontSize: 12, overflow: "truncate" },
        upperLabel: { show: true, height: 20, color: ink.text },
        levels: [
          {
            itemStyle: { borderColor: ink.surface, borderWidth: 0, gapWidth: 2 },
            upperLabel: { show: false },
          },
          level,
          level,
          level,
        ],
      },
    ],
  };
}
