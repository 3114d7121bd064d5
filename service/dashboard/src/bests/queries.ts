import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";
import type { paths } from "../api/schema";

/** Rows in one request of the leaderboard. */
export const CHUNK = 100;

type LeaderboardQuery = NonNullable<paths["/api/v1/leaderboard"]["get"]["parameters"]["query"]>;

/** The filters and the order of the leaderboard, without the position. */
export type LeaderboardView = Omit<LeaderboardQuery, "offset" | "limit">;

/** One chunk of the leaderboard, by its number from 0. */
export function leaderboardQuery(view: LeaderboardView, chunk: number) {
  return queryOptions({
    queryKey: ["leaderboard", view, chunk],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/leaderboard", {
          params: { query: { ...view, offset: chunk * CHUNK, limit: CHUNK } },
          signal,
        }),
      ),
    staleTime: 15_000,
    refetchInterval: 30_000,
  });
}

export const filtersQuery = queryOptions({
  queryKey: ["leaderboard", "filters"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/leaderboard/filters", { signal })),
  staleTime: 30_000,
});
