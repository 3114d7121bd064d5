import { type ECharts, type EChartsCoreOption, init } from "echarts/core";
import { useEffect, useRef } from "react";

interface ChartProps {
  option: EChartsCoreOption;
  height: number;
  /** What the chart shows, in words: it stands for the chart where it cannot be seen. */
  summary: string;
}

/** An ECharts instance that fills its place. The caller registers the parts that its option needs. */
export function Chart({ option, height, summary }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<ECharts | null>(null);

  useEffect(() => {
    const element = place.current as HTMLDivElement;
    const instance = init(element, null, { renderer: "svg" });
    chart.current = instance;
    const observer = new ResizeObserver(() => instance.resize());
    observer.observe(element);
    return () => {
      observer.disconnect();
      instance.dispose();
      chart.current = null;
    };
  }, []);

  useEffect(() => {
    chart.current?.setOption(option, { replaceMerge: ["series"] });
  }, [option]);

  return <div ref={place} role="img" aria-label={summary} style={{ height, width: "100%" }} />;
}
