import { Skeleton } from "@mantine/core";
import type { ComponentType } from "react";
import { lazyView } from "../components/lazy-view";

/** A plot, loaded with ECharts when it is first shown. */
export function lazyChart<Props extends { height: number }>(
  name: string,
  load: () => Promise<{ default: ComponentType<Props> }>,
): ComponentType<Props> {
  return lazyView(name, load, ({ height }) => <Skeleton height={height} />);
}
