import { LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { useMemo } from "react";
import type { Roofline } from "../api/types";
import { Chart } from "../charts/chart";
import { axisInk, gridInk, type Ink, tooltipInk, useInk } from "../charts/ink";
import { formatScaled } from "../format/units";
import type { Roof } from "./roofline";

use([LineChart, ScatterChart, GridComponent, MarkLineComponent, TooltipComponent, SVGRenderer]);

export interface RooflineChartProps {
  roofline: Roofline;
  roof: Roof;
  height: number;
  summary: string;
}

/** The roofline of the device, with the baseline and the best. */
export default function RooflineChart({ roofline, roof, height, summary }: RooflineChartProps) {
  const ink = useInk();
  const option = useMemo(() => chartOption(roofline, roof, ink), [roofline, roof, ink]);
  return <Chart option={option} height={height} summary={summary} />;
}

function chartOption({ points, intensity }: Roofline, { from, to, line, ridge }: Roof, ink: Ink) {
  const axis = axisInk(ink);
  const flops = (value: number) => formatScaled(value, "FLOP/s");
  const lowest = Math.min(line[0]?.[1] as number, ...points.map((point) => point.flops));
  const highest = Math.max(line[1]?.[1] as number, ...points.map((point) => point.flops));
  return {
    animation: false,
    grid: { ...gridInk(16), bottom: 24 },
    tooltip: {
      ...tooltipInk(ink),
      formatter: ({ seriesName, value: [x, y] }: { seriesName: string; value: [number, number] }) =>
        `${seriesName}: ${flops(y)} at ${Number(x.toPrecision(3))} FLOP/B`,
    },
    xAxis: {
      ...axis,
      type: "log",
      min: from,
      max: to,
      name: "arithmetic intensity, FLOP per byte",
      nameLocation: "middle",
      nameGap: 24,
      axisLabel: { ...axis.axisLabel, formatter: (value: number) => String(Number(value.toPrecision(2))) },
    },
    yAxis: {
      ...axis,
      type: "log",
      min: 10 ** Math.floor(Math.log10(lowest)),
      max: 10 ** Math.ceil(Math.log10(highest * 1.5)),
      axisLabel: { ...axis.axisLabel, formatter: flops },
    },
    series: [
      {
        name: "measured peak",
        type: "line",
        data: line,
        symbol: "none",
        lineStyle: { color: ink.text, width: 2 },
        markLine: {
          silent: true,
          symbol: "none",
          lineStyle: { color: ink.line, type: "dashed" },
          label: { formatter: "ridge", position: "insideEndTop", color: ink.text },
          data: [{ xAxis: ridge }],
        },
      },
      ...points.map(({ name, flops: reached }) => ({
        name,
        type: "scatter",
        symbol: name === "best" ? "circle" : "diamond",
        symbolSize: 13,
        itemStyle: { color: name === "best" ? ink.best : ink.trial },
        label: { show: true, position: "right", formatter: `${name} ${flops(reached)}`, color: ink.text },
        data: [[intensity, reached]],
      })),
    ],
  };
}
