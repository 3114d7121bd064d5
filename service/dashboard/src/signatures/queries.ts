import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";

const REFRESH_MS = 60_000;

/** The keys that have signed for the service. They change when an admin rotates or revokes one. */
export const keysQuery = queryOptions({
  queryKey: ["keys"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/keys", { signal })),
  select: (page) => page.items,
  staleTime: REFRESH_MS,
});
