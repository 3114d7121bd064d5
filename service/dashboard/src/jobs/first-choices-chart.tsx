import { LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { useMemo } from "react";
import { Chart } from "../charts/chart";
import { axisInk, gridInk, type Ink, tooltipInk, useInk } from "../charts/ink";
import { logAxis } from "../charts/log-axis";
import { formatLatency, formatLatencyTick } from "../format/units";
import type { FirstChoices } from "./first-choices";

use([LineChart, ScatterChart, GridComponent, MarkLineComponent, TooltipComponent, SVGRenderer]);

interface FirstChoicesChartProps {
  choices: FirstChoices;
  height: number;
  summary: string;
}

/** The latency of each starting point of the rules by its place in their order, and that of the fastest trial. */
export default function FirstChoicesChart({ choices, height, summary }: FirstChoicesChartProps) {
  const ink = useInk();
  const option = useMemo(() => chartOption(choices, ink), [choices, ink]);
  return <Chart option={option} height={height} summary={summary} />;
}

function chartOption({ seeds, fastestUs }: FirstChoices, ink: Ink) {
  const axis = axisInk(ink);
  const scale = logAxis([fastestUs, ...seeds.map(({ us }) => us)]);
  return {
    animation: false,
    grid: { ...gridInk(16), bottom: 24 },
    tooltip: {
      ...tooltipInk(ink),
      formatter: ({ value: [place, us] }: { value: [number, number] }) =>
        `place ${place}: ${formatLatency(us)}`,
    },
    xAxis: {
      ...axis,
      type: "value",
      name: "place in the rules' order",
      nameLocation: "middle",
      nameGap: 24,
      minInterval: 1,
      min: 0,
      max: ({ max }: { max: number }) => Math.max(max + 1, 4),
      splitLine: { show: false },
    },
    yAxis: {
      ...axis,
      type: "log",
      min: scale.min,
      max: scale.max,
      axisTick: { customValues: scale.ticks },
      axisLabel: { ...axis.axisLabel, customValues: scale.ticks, formatter: formatLatencyTick },
    },
    series: [
      {
        name: "first choices",
        type: "scatter",
        symbolSize: 8,
        itemStyle: { color: ink.trial },
        data: seeds.map(({ place, us }) => [place, us]),
        markLine: {
          silent: true,
          symbol: "none",
          lineStyle: { color: ink.best, type: "dashed" },
          label: { formatter: "fastest trial", position: "insideEndTop", color: ink.text, fontSize: 11 },
          data: [{ yAxis: fastestUs }],
        },
      },
    ],
  };
}
