import { LineChart } from "echarts/charts";
import { GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { useMemo } from "react";
import { Chart } from "../charts/chart";
import { axisInk, gridInk, type Ink, legendInk, tooltipInk, useInk } from "../charts/ink";
import { MODEL_NAMES } from "../workloads/models";
import type { Calibrated } from "./calibrations";

use([LineChart, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent, SVGRenderer]);

const SYMBOLS = ["circle", "rect", "triangle"];

interface CalibrationChartProps {
  models: Calibrated[];
  height: number;
  summary: string;
}

/** The rank correlation of each model's scores with measured speed, over the trials of a task. */
export default function CalibrationChart({ models, height, summary }: CalibrationChartProps) {
  const ink = useInk();
  const option = useMemo(() => chartOption(models, ink), [models, ink]);
  return <Chart option={option} height={height} summary={summary} />;
}

function chartOption(models: Calibrated[], ink: Ink) {
  const axis = axisInk(ink);
  return {
    animation: false,
    grid: gridInk(),
    legend: legendInk(ink),
    tooltip: {
      ...tooltipInk(ink),
      trigger: "item",
      formatter: ({ seriesName, value: [trials, rank] }: { seriesName: string; value: [number, number] }) =>
        `${seriesName}, after ${trials} trials: ${rank.toFixed(2)}`,
    },
    xAxis: {
      ...axis,
      type: "value",
      name: "trial",
      nameLocation: "middle",
      nameGap: 24,
      minInterval: 1,
      splitLine: { show: false },
      max: ({ max }: { max: number }) => Math.max(max, 4),
    },
    yAxis: { ...axis, type: "value", min: -1, max: 1, interval: 0.5 },
    series: models.map(({ model, points }, index) => ({
      name: MODEL_NAMES[model],
      type: "line",
      data: points,
      symbol: SYMBOLS[index % SYMBOLS.length],
      symbolSize: 8,
      lineStyle: { color: ink.series[index], width: 1.5 },
      itemStyle: { color: ink.series[index] },
      markLine: index === 0 ? chance(ink) : undefined,
    })),
  };
}

function chance({ text }: Ink) {
  return {
    silent: true,
    symbol: "none",
    lineStyle: { color: text, type: "dashed" },
    label: { formatter: "no better than chance", position: "insideEndBottom", color: text, fontSize: 11 },
    data: [{ yAxis: 0 }],
  };
}
