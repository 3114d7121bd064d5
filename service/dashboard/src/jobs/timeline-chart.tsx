import { CustomChart } from "echarts/charts";
import { DataZoomComponent, GridComponent, TooltipComponent } from "echarts/components";
import { graphic, use } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { useMemo } from "react";
import { Chart } from "../charts/chart";
import { axisInk, escapeHtml, type Ink, tooltipInk, useInk } from "../charts/ink";
import { formatMilliseconds } from "../format/time";
import { plural } from "../format/units";
import type { Lane, LaneKind, Slice } from "./trial-spans";

// Thousands of slices: a canvas draws them at once, where as many elements would not.
use([CustomChart, GridComponent, TooltipComponent, DataZoomComponent, CanvasRenderer]);

const BAR = 0.6;
const LEAST_PX = 1.5;

interface Api {
  value(dimension: number): number;
  coord(point: [number, number]): [number, number];
  size(extent: [number, number]): [number, number];
}

interface Params {
  coordSys: { x: number; y: number; width: number; height: number };
}

export interface TimelineChartProps {
  lanes: Lane[];
  height: number;
  summary: string;
}

export default function TimelineChart({ lanes, height, summary }: TimelineChartProps) {
  const ink = useInk();
  const option = useMemo(() => chartOption(lanes, ink), [lanes, ink]);
  return <Chart option={option} height={height} summary={summary} renderer="canvas" />;
}

function chartOption(lanes: Lane[], ink: Ink) {
  const axis = axisInk(ink);
  const color: Record<Exclude<LaneKind, "phase">, string> = {
    propose: ink.series[3] as string,
    build: ink.series[1] as string,
    measure: ink.series[0] as string,
    certificate: ink.series[2] as string,
  };
  // Phases that follow each other are told apart by their shade.
  const colorOf = (kind: LaneKind, place: number) =>
    kind === "phase" ? (place % 2 ? ink.faint : (ink.series[5] as string)) : color[kind];
  const phases = lanes.find(({ kind }) => kind === "phase")?.slices ?? [];
  const first = Math.min(0, phases[0]?.start ?? 0);
  const last = phases.at(-1)?.end ?? 0;
  const data = lanes.flatMap(({ slices }, lane) =>
    slices.map((slice, place) => ({
      value: [lane, slice.start, slice.end, place],
      itemStyle: { color: colorOf(slice.kind, place) },
      slice,
    })),
  );
  return {
    animation: false,
    grid: { left: 8, right: 24, top: 8, bottom: 44, outerBoundsMode: "same" },
    tooltip: {
      ...tooltipInk(ink),
      formatter: ({ data: { slice } }: { data: { slice: Slice } }) => escapeHtml(inWords(slice)),
    },
    dataZoom: [
      // A long wait in the queue is there, but does not squeeze what follows.
      {
        type: "inside",
        startValue: -first > last ? 0 : first,
        filterMode: "weakFilter",
        zoomOnMouseWheel: "ctrl",
        moveOnMouseWheel: false,
      },
      {
        type: "slider",
        filterMode: "weakFilter",
        height: 20,
        bottom: 8,
        borderColor: ink.line,
        fillerColor: ink.line,
        backgroundColor: "transparent",
        handleStyle: { color: ink.surface, borderColor: ink.text },
        moveHandleStyle: { color: ink.faint },
        emphasis: { handleStyle: { borderColor: ink.best }, moveHandleStyle: { color: ink.text } },
        textStyle: { color: ink.text },
        labelFormatter: formatMilliseconds,
        showDataShadow: false,
      },
    ],
    xAxis: {
      ...axis,
      type: "value",
      min: first,
      max: "dataMax",
      axisLabel: { ...axis.axisLabel, formatter: formatMilliseconds, hideOverlap: true, showMaxLabel: false },
    },
    yAxis: {
      ...axis,
      type: "category",
      inverse: true,
      data: lanes.map(({ label }) => label),
      axisTick: { show: false },
      axisLabel: { ...axis.axisLabel, width: 180, overflow: "truncate" },
    },
    series: [
      {
        type: "custom",
        encode: { x: [1, 2], y: 0 },
        data,
        renderItem: (params: Params, api: Api) => {
          const lane = api.value(0);
          const [left, middle] = api.coord([api.value(1), lane]);
          const [right] = api.coord([api.value(2), lane]);
          const height = api.size([0, 1])[1] * BAR;
          const bar = { x: left, y: middle - height / 2, width: Math.max(right - left, LEAST_PX), height };
          const shape = graphic.clipRectByRect(bar, params.coordSys);
          return (
            shape && {
              type: "rect",
              shape,
              style: { fill: colorOf(lanes[lane]?.kind ?? "build", api.value(3)) },
            }
          );
        },
      },
    ],
  };
}

function inWords({ kind, words, worker, start, end, trials }: Slice): string {
  if (kind === "certificate") return `${words} certified ${formatMilliseconds(start)} after the start`;
  if (kind === "phase") return `${words}: ${formatMilliseconds(end - start)}`;
  const which = trials.length === 1 ? `trial ${trials[0]}` : plural(trials.length, "trial");
  return `${kind}, ${which}: ${formatMilliseconds(end - start)} on ${worker}, ${formatMilliseconds(start)} after the start`;
}
