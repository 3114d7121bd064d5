import { type ECharts, type EChartsCoreOption, init } from "echarts/core";
import { useEffect, useRef } from "react";

interface ChartProps {
  option: EChartsCoreOption;
  height: number;
  /** Description of the chart for screen readers. */
  summary: string;
  /** Canvas for charts with thousands of parts; else SVG, whose text can be read and searched. */
  renderer?: "svg" | "canvas";
  /** Handlers of ECharts' events, by name. */
  on?: Record<string, (event: unknown) => void>;
  /** Called after the chart shows a new option, for example to dispatch an action. */
  after?: (chart: ECharts) => void;
}

/** An ECharts instance that fills its container. The caller registers the modules that its option needs. */
export function Chart({ option, height, summary, renderer = "svg", on = {}, after }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<ECharts | null>(null);
  const handlers = useRef(on);
  handlers.current = on;
  const names = Object.keys(on).join(" ");

  useEffect(() => {
    const element = place.current as HTMLDivElement;
    const instance = init(element, null, { renderer });
    chart.current = instance;
    for (const name of names.split(" ").filter(Boolean)) {
      instance.on(name, (event: unknown) => handlers.current[name]?.(event));
    }
    const observer = new ResizeObserver(() => instance.resize());
    observer.observe(element);
    return () => {
      observer.disconnect();
      instance.dispose();
      chart.current = null;
    };
  }, [names, renderer]);

  useEffect(() => {
    chart.current?.setOption(option, { replaceMerge: ["series", "parallelAxis"] });
  }, [option]);

  useEffect(() => {
    if (chart.current) after?.(chart.current);
  });

  return <div ref={place} role="img" aria-label={summary} style={{ height, width: "100%" }} />;
}
