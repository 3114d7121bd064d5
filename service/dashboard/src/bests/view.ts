import { parseSorting } from "../components/use-sorting";
import type { BestSchedulesView } from "./queries";

type SortKey = NonNullable<BestSchedulesView["sort"]>;

const SORT_KEYS: readonly string[] = [
  "name",
  "op",
  "baseline",
  "best",
  "speedup",
  "peak",
  "created",
] satisfies SortKey[];

export const DEFAULT_SORT = "-created";

/** The state of the list of best schedules, as in its address: `?q=mat&op=matmul&sort=-speedup`. */
export function viewOf(params: URLSearchParams): BestSchedulesView {
  const [sorted] = parseSorting(params.get("sort") ?? DEFAULT_SORT);
  const known = sorted !== undefined && SORT_KEYS.includes(sorted.id);
  return {
    q: params.get("q") || undefined,
    op: params.get("op") || undefined,
    target: params.get("target") || undefined,
    device_class: params.get("device_class") || undefined,
    sort: (known ? sorted.id : "created") as SortKey,
    order: known && !sorted.desc ? "asc" : "desc",
  };
}

/** The address of the whole list as CSV. */
export function csvPath(view: BestSchedulesView): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(view)) if (value) query.set(name, String(value));
  return `/api/v1/best-schedules.csv?${query}`;
}
