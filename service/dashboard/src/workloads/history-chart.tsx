import { LineChart } from "echarts/charts";
import { GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import { use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { useMemo } from "react";
import type { HistoryPoint } from "../api/types";
import { Chart } from "../charts/chart";
import { axisInk, escapeHtml, gridInk, type Ink, legendInk, tooltipInk, useInk } from "../charts/ink";
import { logAxis } from "../charts/log-axis";
import { formatTarget } from "../format/target";
import { formatAbsolute } from "../format/time";
import { formatLatency, formatLatencyTick, formatSpeedup } from "../format/units";

use([LineChart, GridComponent, LegendComponent, TooltipComponent, SVGRenderer]);

const SHAPES = ["circle", "diamond", "triangle", "rect", "roundRect", "pin"];

export interface HistoryChartProps {
  /** The oldest first, as the service lists them. */
  points: HistoryPoint[];
  height: number;
  summary: string;
}

/** Certified latencies in time: one line a device class, solid for the best, hollow dots for the baseline. */
export default function HistoryChart({ points, height, summary }: HistoryChartProps) {
  const ink = useInk();
  const option = useMemo(() => chartOption(points, ink), [points, ink]);
  return <Chart option={option} height={height} summary={summary} />;
}

function chartOption(points: HistoryPoint[], ink: Ink) {
  const axis = axisInk(ink);
  const scale = logAxis(points.flatMap(({ best_us, baseline_us }) => [best_us, baseline_us]));
  const classes = [...new Set(points.map(({ device_class }) => device_class))];
  return {
    animation: false,
    grid: gridInk(classes.length > 2 ? 64 : 40),
    legend: legendInk(ink),
    tooltip: {
      ...tooltipInk(ink),
      formatter: ({ data: { point, of } }: { data: { point: HistoryPoint; of: string } }) =>
        escapeHtml(inWords(point, of)),
    },
    xAxis: {
      ...axis,
      type: "time",
      splitLine: { show: false },
      axisLabel: { ...axis.axisLabel, hideOverlap: true },
    },
    yAxis: {
      ...axis,
      type: "log",
      min: scale.min,
      max: scale.max,
      axisTick: { customValues: scale.ticks },
      axisLabel: { ...axis.axisLabel, customValues: scale.ticks, formatter: formatLatencyTick },
    },
    series: classes.flatMap((id, index) => {
      const mine = points.filter(({ device_class }) => device_class === id);
      const color = ink.series[index % ink.series.length];
      const name = className(mine[0] as HistoryPoint);
      const shared = { type: "line", symbol: SHAPES[index % SHAPES.length], symbolSize: 9 };
      return [
        {
          ...shared,
          name: `${name}, best`,
          step: "end",
          lineStyle: { color, width: 2 },
          itemStyle: { color },
          data: mine.map((point) => ({ value: [point.created_at, point.best_us], point, of: "best" })),
        },
        {
          ...shared,
          name: `${name}, baseline`,
          lineStyle: { color, width: 1, type: "dashed", opacity: 0.6 },
          itemStyle: { color: ink.surface, borderColor: color, borderWidth: 1.5 },
          data: mine.map((point) => ({
            value: [point.created_at, point.baseline_us],
            point,
            of: "baseline",
          })),
        },
      ];
    }),
  };
}

function className({ target, device_model }: HistoryPoint): string {
  return `${formatTarget(target)}, ${device_model}`;
}

function inWords(point: HistoryPoint, of: string): string {
  const us = of === "best" ? point.best_us : point.baseline_us;
  const job = point.job_name ?? point.job_id ?? "imported";
  return `${of} ${formatLatency(us)} (${formatSpeedup(point.speedup, point.interval)}), ${job}, ${formatAbsolute(new Date(point.created_at))}`;
}
