import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";
import { REFRESH_MS } from "../api/query-client";

export const workersQuery = queryOptions({
  queryKey: ["workers"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/workers", { signal })),
  refetchInterval: REFRESH_MS,
});

export const deviceClassesQuery = queryOptions({
  queryKey: ["device-classes"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/device-classes", { signal })),
  refetchInterval: 10 * REFRESH_MS,
});

export const leasesQuery = queryOptions({
  queryKey: ["leases"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/leases", { signal })),
  refetchInterval: REFRESH_MS,
});

export const targetsQuery = queryOptions({
  queryKey: ["targets"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/targets", { signal })),
});

/** Ends a worker's quarantine. */
export function useReadmitWorker(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () =>
      unwrap(api.POST("/api/v1/workers/{worker_id}/readmit", { params: { path: { worker_id: id } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["workers"] }),
  });
}

/** Drains or undrains a worker. */
export function useDrainWorker(id: string, drained: boolean) {
  const queries = useQueryClient();
  const params = { params: { path: { worker_id: id } } };
  return useMutation({
    mutationFn: () =>
      drained
        ? unwrap(api.POST("/api/v1/workers/{worker_id}/drain", params))
        : unwrap(api.POST("/api/v1/workers/{worker_id}/undrain", params)),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["workers"] }),
  });
}
