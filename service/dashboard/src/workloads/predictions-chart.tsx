import { LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, MarkLineComponent, TitleComponent, TooltipComponent } from "echarts/components";
import { use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { useMemo } from "react";
import type { PredictionPair, PredictionRound } from "../api/types";
import { Chart } from "../charts/chart";
import { axisInk, type Ink, tooltipInk, useInk } from "../charts/ink";
import { logAxis } from "../charts/log-axis";
import { formatLatency, formatLatencyTick } from "../format/units";

use([
  LineChart,
  ScatterChart,
  GridComponent,
  MarkLineComponent,
  TitleComponent,
  TooltipComponent,
  SVGRenderer,
]);

export interface PredictionsChartProps {
  rounds: PredictionRound[];
  /** Index of the round whose pairs are shown; null for those of all. */
  chosen: number | null;
  onChoose(round: number): void;
  height: number;
  summary: string;
}

/** At the left what was predicted against what was measured; at the right how well each round was ordered. */
export default function PredictionsChart({
  rounds,
  chosen,
  onChoose,
  height,
  summary,
}: PredictionsChartProps) {
  const ink = useInk();
  const option = useMemo(() => chartOption(rounds, chosen, ink), [rounds, chosen, ink]);
  const on = {
    click: (event: unknown) => {
      const { seriesName, dataIndex } = event as { seriesName: string; dataIndex: number };
      if (seriesName === "rank correlation") onChoose(dataIndex);
    },
  };
  return <Chart option={option} height={height} summary={summary} on={on} />;
}

function chartOption(rounds: PredictionRound[], chosen: number | null, ink: Ink) {
  const axis = axisInk(ink);
  const all = rounds.flatMap(({ pairs }) => pairs);
  const scale = logAxis(all.map(({ median_us }) => median_us));
  const title = { top: 0, textStyle: { color: ink.text, fontSize: 12, fontWeight: 500 } };
  const point = (pair: PredictionPair) => [pair.predicted, pair.median_us];
  const dots = { type: "scatter", symbolSize: 7 };
  return {
    animation: false,
    title: [
      { ...title, left: 8, text: "Measured, by predicted score" },
      { ...title, left: "56%", text: "Rank correlation, by round" },
    ],
    tooltip: {
      ...tooltipInk(ink),
      formatter: ({ seriesName, value: [x, y] }: { seriesName: string; value: [number, number] }) =>
        seriesName === "rank correlation"
          ? `round ${x}: ${y.toFixed(2)}`
          : `predicted ${x.toFixed(2)}, measured ${formatLatency(y)}`,
    },
    grid: [
      { left: 8, width: "48%", top: 32, bottom: 24, outerBoundsMode: "same" },
      { left: "56%", right: 24, top: 32, bottom: 24, outerBoundsMode: "same" },
    ],
    xAxis: [
      { ...axis, type: "value", scale: true, name: "predicted score", nameLocation: "middle", nameGap: 24 },
      {
        ...axis,
        type: "value",
        gridIndex: 1,
        min: 1,
        max: Math.max(rounds.length, 2),
        minInterval: 1,
        name: "round",
        nameLocation: "middle",
        nameGap: 24,
        splitLine: { show: false },
      },
    ],
    yAxis: [
      {
        ...axis,
        type: "log",
        min: scale.min,
        max: scale.max,
        axisTick: { customValues: scale.ticks },
        axisLabel: { ...axis.axisLabel, customValues: scale.ticks, formatter: formatLatencyTick },
      },
      { ...axis, type: "value", gridIndex: 1, min: -1, max: 1, interval: 0.5 },
    ],
    series: [
      { ...dots, name: "all rounds", data: all.map(point), itemStyle: { color: ink.faint } },
      {
        ...dots,
        name: "this round",
        data: (chosen === null ? all : (rounds[chosen]?.pairs ?? [])).map(point),
        itemStyle: { color: ink.best, opacity: 0.8 },
      },
      {
        name: "rank correlation",
        type: "line",
        xAxisIndex: 1,
        yAxisIndex: 1,
        symbol: "circle",
        cursor: "pointer",
        symbolSize: (_: unknown, { dataIndex }: { dataIndex: number }) => (dataIndex === chosen ? 12 : 7),
        lineStyle: { color: ink.trial, width: 1.5 },
        itemStyle: { color: ink.trial },
        data: rounds.map(({ rank_correlation }, index) => [index + 1, rank_correlation ?? "-"]),
        markLine: {
          silent: true,
          symbol: "none",
          lineStyle: { color: ink.text, type: "dashed" },
          label: {
            formatter: "no better than chance",
            position: "insideEndBottom",
            color: ink.text,
            fontSize: 11,
          },
          data: [{ yAxis: 0 }],
        },
      },
    ],
  };
}
