import { type ECharts, type EChartsCoreOption, init } from "echarts/core";
import { useEffect, useRef } from "react";

interface ChartProps {
  option: EChartsCoreOption;
  height: number;
  /** What the chart shows, in words: it stands for the chart where it cannot be seen. */
  summary: string;
  /** A canvas for what has thousands of parts; SVG, whose words can be read and searched, for all else. */
  renderer?: "svg" | "canvas";
  /** What to do on ECharts' events, by their name. */
  on?: Record<string, (event: unknown) => void>;
  /** What to do with the chart once it shows a new option: dispatch an action, say. */
  after?: (chart: ECharts) => void;
}

/** An ECharts instance that fills its place. The caller registers the parts that its option needs. */
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
