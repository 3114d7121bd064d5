import { ParallelChart as ParallelSeries } from "echarts/charts";
import { ParallelComponent } from "echarts/components";
import { type ECharts, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { useMemo } from "react";
import type { DecisionColumn, Decisions } from "../api/types";
import { Chart } from "../charts/chart";
import { type Ink, useInk } from "../charts/ink";
import { formatCount, formatLatencyTick } from "../format/units";
import { type Brush, LATENCY } from "./brush";

use([ParallelSeries, ParallelComponent, SVGRenderer]);

const LABEL_LENGTH = 16;

export interface ParallelChartProps {
  decisions: Decisions;
  /** Places of the columns that have an axis. */
  shown: number[];
  brush: Brush;
  onBrush(brush: Brush): void;
  height: number;
  summary: string;
}

interface AreaEvent {
  parallelAxisId: string;
  intervals: [number, number][];
}

/** One axis a choice and one for the latency; a line is a trial. Brushing an axis leaves the lines within. */
export default function ParallelChart({
  decisions,
  shown,
  brush,
  onBrush,
  height,
  summary,
}: ParallelChartProps) {
  const ink = useInk();
  const option = useMemo(() => chartOption(decisions, shown, ink), [decisions, shown, ink]);
  const on = {
    axisareaselected: (event: unknown) => {
      const { parallelAxisId: name, intervals } = event as AreaEvent;
      const next = { ...brush };
      if (intervals[0]) next[name] = intervals[0];
      else delete next[name];
      if (JSON.stringify(next) !== JSON.stringify(brush)) onBrush(next);
    },
  };
  const names = [...shown.map((place) => (decisions.columns[place] as DecisionColumn).name), LATENCY];
  const show = (chart: ECharts) => {
    for (const name of names) {
      const interval = brush[name];
      chart.dispatchAction({
        type: "axisAreaSelect",
        parallelAxisId: name,
        intervals: interval ? [interval] : [],
      });
    }
  };
  return <Chart option={option} height={height} summary={summary} on={on} after={show} />;
}

function chartOption({ columns, rows }: Decisions, shown: number[], ink: Ink) {
  const look = {
    nameTextStyle: { color: ink.text, fontSize: 11 },
    nameTruncate: { maxWidth: 110 },
    nameGap: 12,
    axisLine: { lineStyle: { color: ink.faint } },
    axisTick: { lineStyle: { color: ink.faint } },
    // Lines run behind the labels.
    axisLabel: { color: ink.text, fontSize: 11, backgroundColor: ink.surface, padding: [1, 3] },
    areaSelectStyle: { width: 18, color: ink.best, opacity: 0.25, borderColor: ink.best },
    realtime: false,
  };
  const axes = shown.map((place, dim) => {
    const { name, log, categories } = columns[place] as DecisionColumn;
    const named = { ...look, id: name, dim, name: shorten(name) };
    if (categories) return { ...named, type: "category", data: categories.map((each) => shorten(each)) };
    const values = rows.map((row) => row.values[place]).filter((value) => value != null);
    const [min, max] = [Math.min(...values), Math.max(...values)];
    if (!log || min <= 0) return { ...named, type: "value", scale: true, minInterval: 1 };
    return { ...named, type: "log", logBase: 2, min, max };
  });
  const latency = {
    ...look,
    id: LATENCY,
    dim: shown.length,
    name: LATENCY,
    type: "log",
    min: Math.min(...rows.map(({ median_us }) => median_us)) * 0.95,
    max: Math.max(...rows.map(({ median_us }) => median_us)) * 1.05,
    // Fast is good, and good is up.
    inverse: true,
    nameLocation: "start",
    axisLabel: { ...look.axisLabel, formatter: formatLatencyTick },
  };
  const step = Math.max(1, Math.ceil(rows.length / ink.ramp.length));
  return {
    animation: false,
    parallel: { left: 48, right: 72, top: 36, bottom: 16, parallelAxisDefault: {} },
    parallelAxis: [...axes, latency],
    series: ink.ramp
      .map((color, rank) => ({
        type: "parallel",
        name: `${formatCount(rank * step + 1)}th and on`,
        silent: true,
        inactiveOpacity: 0.04,
        activeOpacity: 1,
        lineStyle: { color, width: rank === 0 ? 1.75 : 1, opacity: rank === 0 ? 0.9 : 0.5 },
        z: ink.ramp.length - rank,
        data: rows
          .slice(rank * step, (rank + 1) * step)
          .map((row) => [...shown.map((place) => row.values[place] ?? "-"), row.median_us]),
      }))
      .filter(({ data }) => data.length > 0)
      // The fastest are drawn last, above the others.
      .reverse(),
  };
}

function shorten(name: string): string {
  return name.length <= LABEL_LENGTH ? name : `…${name.slice(1 - LABEL_LENGTH)}`;
}
