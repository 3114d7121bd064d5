import { useQueries } from "@tanstack/react-query";
import { useRef } from "react";
import type { BestSchedule } from "../api/types";
import { type BestSchedulesView, bestSchedulesQuery, CHUNK } from "./queries";

interface Chunks {
  /** Total number of rows; undefined until the first answer. */
  total: number | undefined;
  rowAt(index: number): BestSchedule | undefined;
  /** True while the rows of the previous view are shown. */
  outdated: boolean;
  failed: { error: Error; refetch(): unknown } | undefined;
}

/**
 * The best schedules from row `first` to row `last`, read in chunks. Until a new view's rows are there, the
 * old ones stay, so that sorting does not make the page flicker.
 */
export function useChunks(view: BestSchedulesView, first: number, last: number): Chunks {
  const from = Math.floor(first / CHUNK);
  const chunks = Array.from({ length: Math.floor(last / CHUNK) - from + 1 }, (_, index) => from + index);
  const pages = useQueries({ queries: chunks.map((chunk) => bestSchedulesQuery(view, chunk)) });

  const kept = useRef<{ total: number | undefined; rows: Map<number, BestSchedule[]> }>({
    total: undefined,
    rows: new Map(),
  });
  pages.forEach(({ data }, index) => {
    if (data === undefined) return;
    kept.current.total = data.total;
    kept.current.rows.set(chunks[index] as number, data.items);
  });
  const failed = pages.find((page) => page.error !== null);
  return {
    total: kept.current.total,
    rowAt: (index) => kept.current.rows.get(Math.floor(index / CHUNK))?.[index % CHUNK],
    outdated: pages.some((page) => page.data === undefined),
    failed: failed?.error ? { error: failed.error, refetch: failed.refetch } : undefined,
  };
}
