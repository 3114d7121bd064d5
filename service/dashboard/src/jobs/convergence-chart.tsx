import { LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { useMemo } from "react";
import type { Task } from "../api/types";
import { Chart } from "../charts/chart";
import {
  axisInk,
  CROSS_ICON,
  gridInk,
  type Ink,
  LINE_ICON,
  legendInk,
  tooltipInk,
  useInk,
} from "../charts/ink";
import { logAxis } from "../charts/log-axis";
import { formatLatency, formatLatencyTick } from "../format/units";
import type { Convergence } from "./convergence";

use([
  LineChart,
  ScatterChart,
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  TooltipComponent,
  SVGRenderer,
]);

export interface ConvergenceChartProps {
  curve: Convergence;
  baselineUs: number | null;
  /** Time of a vendor's library for the same operation. */
  library: Task["library"];
  height: number;
  summary: string;
}

export default function ConvergenceChart(props: ConvergenceChartProps) {
  const { curve, baselineUs, library, height, summary } = props;
  const ink = useInk();
  const option = useMemo(
    () => chartOption(curve, referenceLines(baselineUs, library), ink),
    [curve, baselineUs, library, ink],
  );
  return <Chart option={option} height={height} summary={summary} />;
}

interface ReferenceLine {
  name: string;
  us: number;
}

function referenceLines(baselineUs: number | null, library: Task["library"]): ReferenceLine[] {
  return [
    ...(baselineUs === null ? [] : [{ name: "baseline", us: baselineUs }]),
    // The page of the schedule shows the versions.
    ...(library === null ? [] : [{ name: library.name.replace(/ .*/, ""), us: library.us }]),
  ];
}

function chartOption({ measured, best, failed }: Convergence, lines: ReferenceLine[], ink: Ink) {
  const shown = [...[...measured, ...best].map(([, us]) => us), ...lines.map(({ us }) => us)];
  const scale = logAxis(shown.length > 0 ? shown : [1, 1_000]);
  const axis = axisInk(ink);
  return {
    // Otherwise, points would move at every live update.
    animation: false,
    grid: gridInk(),
    legend: {
      ...legendInk(ink),
      data: [
        { name: "best so far", icon: LINE_ICON },
        { name: "trial", icon: "circle" },
        ...(failed.length === 0 ? [] : [{ name: "failed", icon: CROSS_ICON }]),
      ],
    },
    tooltip: {
      ...tooltipInk(ink),
      trigger: "item",
      formatter: ({ seriesName, value: [number, us] }: { seriesName: string; value: [number, number] }) =>
        seriesName === "failed"
          ? `trial ${number}: failed`
          : `${seriesName}, trial ${number}: ${formatLatency(us)}`,
    },
    xAxis: {
      ...axis,
      type: "value",
      name: "trial",
      nameLocation: "middle",
      nameGap: 24,
      minInterval: 1,
      splitLine: { show: false },
      // The last trial seldom falls on a round number, and its label would run into its neighbour.
      axisLabel: { ...axis.axisLabel, showMaxLabel: false },
      max: ({ max }: { max: number }) => Math.max(max, 4),
    },
    yAxis: [
      {
        ...axis,
        type: "log",
        min: scale.min,
        max: scale.max,
        axisTick: { customValues: scale.ticks },
        axisLabel: { ...axis.axisLabel, customValues: scale.ticks, formatter: formatLatencyTick },
      },
      // Failed trials have no latency. They are drawn at the bottom, on an axis of their own.
      { type: "value", min: 0, max: 1, show: false },
    ],
    series: [
      {
        name: "best so far",
        type: "line",
        step: "end",
        data: best,
        symbol: "none",
        lineStyle: { color: ink.best, width: 2.5 },
        itemStyle: { color: ink.best },
        z: 3,
        markLine: lines.length === 0 ? undefined : markedLines(lines, ink),
      },
      {
        name: "trial",
        type: "scatter",
        data: measured,
        symbolSize: 6,
        itemStyle: { color: ink.trial, opacity: 0.75 },
      },
      ...(failed.length === 0
        ? []
        : [
            {
              name: "failed",
              type: "scatter",
              yAxisIndex: 1,
              data: failed.map((number) => [number, 0.025]),
              symbol: CROSS_ICON,
              symbolSize: 7,
              itemStyle: { color: ink.failed, opacity: 1 },
            },
          ]),
    ],
  };
}

function markedLines(lines: ReferenceLine[], { baseline, surface }: Ink) {
  return {
    silent: true,
    symbol: "none",
    lineStyle: { color: baseline, type: "dashed", width: 1.5 },
    label: {
      color: baseline,
      // A grid line may run behind the words.
      backgroundColor: surface,
      padding: [1, 4],
    },
    // At the two ends, where labels of lines that are close do not cover each other.
    data: lines.map(({ name, us }, index) => ({
      yAxis: us,
      label: {
        formatter: `${name} ${formatLatency(us)}`,
        position: index === 0 ? "insideEndTop" : "insideStartTop",
      },
    })),
  };
}
