import { queryOptions, useMutation, useQuery } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";
import type { Right } from "../api/types";

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/session", { signal })),
  staleTime: 5 * 60_000,
});

/** Whether who is signed in may do this. What a guest may not do is not offered; the service refuses it anyway. */
export function useMay(right: Right): boolean {
  return useQuery(sessionQuery).data?.rights.includes(right) ?? false;
}

export function useGuestLink() {
  return useMutation({
    mutationFn: (days: number) => unwrap(api.POST("/api/v1/guest-links", { body: { days } })),
  });
}
