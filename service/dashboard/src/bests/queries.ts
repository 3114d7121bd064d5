import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";
import type { paths } from "../api/schema";

/** Rows in one request of the list of best schedules. */
export const CHUNK = 100;

type BestScheduleQuery = NonNullable<paths["/api/v1/best-schedules"]["get"]["parameters"]["query"]>;

/** The filters and the order of the list of best schedules, without the position. */
export type BestSchedulesView = Omit<BestScheduleQuery, "offset" | "limit">;

/** One chunk of the list of best schedules, by its number from 0. */
export function bestSchedulesQuery(view: BestSchedulesView, chunk: number) {
  return queryOptions({
    queryKey: ["best-schedules", view, chunk],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/best-schedules", {
          params: { query: { ...view, offset: chunk * CHUNK, limit: CHUNK } },
          signal,
        }),
      ),
    staleTime: 15_000,
    refetchInterval: 30_000,
  });
}

export const filtersQuery = queryOptions({
  queryKey: ["best-schedules", "filters"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/best-schedules/filters", { signal })),
  staleTime: 30_000,
});
