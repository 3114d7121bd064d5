import { useComputedColorScheme } from "@mantine/core";
import { LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { useMemo } from "react";
import { Chart } from "../components/chart";
import { formatLatency, formatLatencyTick } from "../format/units";
import { type Convergence, logAxis } from "./convergence";

use([
  LineChart,
  ScatterChart,
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  TooltipComponent,
  SVGRenderer,
]);

// Okabe & Ito's blue, amber and vermillion, lightened for the dark page.
const INK = {
  light: {
    text: "#57606a",
    line: "#dfe4ea",
    best: "#0b6ba6",
    trial: "#c98a00",
    failed: "#c04a00",
    surface: "#fff",
  },
  dark: {
    text: "#a3adb8",
    line: "#313741",
    best: "#6db2de",
    trial: "#e6a93c",
    failed: "#ff8f5c",
    surface: "#1c2027",
  },
};

const CROSS = "path://M0 1L1 0L5 4L9 0L10 1L6 5L10 9L9 10L5 6L1 10L0 9L4 5Z";

export interface ConvergenceChartProps {
  curve: Convergence;
  baselineUs: number | null;
  height: number;
  summary: string;
}

export default function ConvergenceChart({ curve, baselineUs, height, summary }: ConvergenceChartProps) {
  const scheme = useComputedColorScheme("light");
  const option = useMemo(() => chartOption(curve, baselineUs, INK[scheme]), [curve, baselineUs, scheme]);
  return <Chart option={option} height={height} summary={summary} />;
}

function chartOption(
  { measured, best, failed }: Convergence,
  baselineUs: number | null,
  ink: typeof INK.light,
) {
  const latencies = [...measured, ...best].map(([, us]) => us);
  if (baselineUs !== null) latencies.push(baselineUs);
  const scale = logAxis(latencies.length > 0 ? latencies : [1, 1_000]);
  const axis = {
    axisLine: { lineStyle: { color: ink.line } },
    axisLabel: { color: ink.text },
    nameTextStyle: { color: ink.text },
    splitLine: { lineStyle: { color: ink.line } },
  };
  return {
    // Live points would otherwise swim into place at every update.
    animation: false,
    grid: { left: 8, right: 16, top: 40, bottom: 4, outerBoundsMode: "same" },
    legend: {
      top: 0,
      left: 0,
      itemWidth: 14,
      itemHeight: 10,
      selectedMode: false,
      textStyle: { color: ink.text },
      data: [
        { name: "best so far", icon: "path://M0 4H14V6H0Z" },
        { name: "trial", icon: "circle" },
        ...(failed.length === 0 ? [] : [{ name: "failed", icon: CROSS }]),
      ],
    },
    tooltip: {
      trigger: "item",
      backgroundColor: ink.surface,
      borderColor: ink.line,
      textStyle: { color: ink.text, fontSize: 13 },
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
      // Failed trials have no latency; they stand on the ground of the plot, beside the scale and not on it.
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
        markLine: baselineUs === null ? undefined : baselineLine(baselineUs, ink),
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
              symbol: CROSS,
              symbolSize: 7,
              itemStyle: { color: ink.failed, opacity: 1 },
            },
          ]),
    ],
  };
}

function baselineLine(us: number, { text, surface }: typeof INK.light) {
  return {
    silent: true,
    symbol: "none",
    lineStyle: { color: text, type: "dashed", width: 1.5 },
    label: {
      formatter: `baseline ${formatLatency(us)}`,
      position: "insideEndTop",
      color: text,
      // A grid line may run behind the words.
      backgroundColor: surface,
      padding: [1, 4],
    },
    data: [{ yAxis: us }],
  };
}
