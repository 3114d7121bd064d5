import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";
import { REFRESH_MS } from "../api/query-client";

export const overviewQuery = queryOptions({
  queryKey: ["overview"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/overview", { signal })),
  refetchInterval: REFRESH_MS,
});

export const versionQuery = queryOptions({
  queryKey: ["version"],
  queryFn: ({ signal }) => unwrap(api.GET("/version", { signal })),
  staleTime: Number.POSITIVE_INFINITY,
});
