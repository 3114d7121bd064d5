import { LineChart, ScatterChart } from "echarts/charts";
import { GridComponent, TooltipComponent } from "echarts/components";
import { use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { useMemo } from "react";
import type { Roofline } from "../api/types";
import { Chart } from "../charts/chart";
import { axisInk, gridInk, type Ink, tooltipInk, useInk } from "../charts/ink";
import { formatScaled } from "../format/units";
import { labelsOf, type Roof } from "./roofline";

/** Points whose rates are closer, as a factor, have words that would cover each other. */
const CLOSE = 4;
/** How far such words are moved up or down. */
const LABEL_PX = 16;

use([LineChart, ScatterChart, GridComponent, TooltipComponent, SVGRenderer]);

export interface RooflineChartProps {
  roofline: Roofline;
  roof: Roof;
  height: number;
  summary: string;
}

/** The roofs of the device, with the baseline and the best. That which limits the workload is drawn heavier. */
export default function RooflineChart({ roofline, roof, height, summary }: RooflineChartProps) {
  const ink = useInk();
  const option = useMemo(() => chartOption(roofline, roof, ink), [roofline, roof, ink]);
  return <Chart option={option} height={height} summary={summary} />;
}

function chartOption({ points, intensity }: Roofline, { from, to, lines }: Roof, ink: Ink) {
  const axis = axisInk(ink);
  const flops = (value: number) => formatScaled(value, "FLOP/s");
  const heights = [
    ...lines.flatMap((line) => line.points.map(([, y]) => y)),
    ...points.map((point) => point.flops),
  ];
  const [lowest, highest] = [Math.min(...heights), Math.max(...heights)];
  const labels = labelsOf(lines);
  const rates = points.map((point) => point.flops);
  const upper = [...points].sort((a, b) => b.flops - a.flops)[0]?.name;
  const isClose = rates.length > 1 && Math.max(...rates) < CLOSE * Math.min(...rates);
  // A phone has room for the words of a point on one side only.
  const isRight = intensity !== null && intensity > Math.sqrt(from * to);
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
      ...lines.map(({ name, points: ends, limits }, index) => ({
        name,
        type: "line",
        data: ends,
        symbol: "none",
        lineStyle: { color: ink.text, width: limits ? 2.5 : 1, type: limits ? "solid" : "dashed" },
        // Memories above the end of the line, where they meet the arithmetic, whose name is below its own.
        endLabel: {
          show: labels[index] !== "",
          formatter: labels[index],
          color: ink.text,
          align: "right",
          offset: [0, name === "arithmetic" ? 12 : -10],
        },
      })),
      ...points.map(({ name, flops: reached }) => ({
        name,
        type: "scatter",
        symbol: name === "best" ? "circle" : "diamond",
        symbolSize: 13,
        itemStyle: { color: name === "best" ? ink.best : ink.trial },
        label: {
          show: true,
          position: isRight ? "left" : "right",
          align: isRight ? "right" : "left",
          formatter: `${name}\n${flops(reached)}`,
          lineHeight: 15,
          offset: [0, isClose ? (name === upper ? -LABEL_PX : LABEL_PX) : 0],
          color: ink.text,
        },
        data: [[intensity, reached]],
      })),
    ],
  };
}
