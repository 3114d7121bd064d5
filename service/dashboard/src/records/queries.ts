import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";
import { REFRESH_MS } from "../api/query-client";
import { isFinished } from "../api/types";

export function recordQuery(id: string) {
  return queryOptions({
    queryKey: ["record", id],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/records/{record_id}", { params: { path: { record_id: id } }, signal })),
  });
}

/** The machine code of a record. It is compiled on request, which may take some seconds. */
export function assemblyQuery(id: string) {
  return queryOptions({
    queryKey: ["record", id, "assembly"],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/records/{record_id}/assembly", { params: { path: { record_id: id } }, signal }),
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The newest ablation of a record, or null; asked for again while its job is not finished. */
export function ablationQuery(id: string) {
  return queryOptions({
    queryKey: ["record", id, "ablation"],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET("/api/v1/records/{record_id}/ablation", { params: { path: { record_id: id } }, signal }),
      ),
    refetchInterval: ({ state }) => (state.data && !isFinished(state.data.state) ? REFRESH_MS : false),
  });
}

/** The ablation that a job measures, or null for other jobs. */
export function ablationOfJobQuery(jobId: string) {
  return queryOptions({
    queryKey: ["job", jobId, "ablation"],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/jobs/{job_id}/ablation", { params: { path: { job_id: jobId } }, signal })),
    refetchInterval: ({ state }) => (state.data && !isFinished(state.data.state) ? REFRESH_MS : false),
  });
}

/** Starts a job that races a record's schedule with its neighbours. */
export function useAblate(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () =>
      unwrap(api.POST("/api/v1/records/{record_id}/ablation", { params: { path: { record_id: id } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["record", id, "ablation"] }),
  });
}

/** The ancestors of a record, and how the best of its workload differs from it. */
export function lineageQuery(id: string) {
  return queryOptions({
    queryKey: ["record", id, "lineage"],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/records/{record_id}/lineage", { params: { path: { record_id: id } }, signal })),
  });
}

/** The fastest measured trials of a workload on a device class: the candidates for a comparison. */
export function siblingsQuery(workloadHash: string, deviceClass: string) {
  return queryOptions({
    queryKey: ["records", workloadHash, deviceClass],
    queryFn: async ({ signal }) => {
      const query = { workload_hash: workloadHash, sort: "latency" as const, page_size: 100 };
      const page = await unwrap(api.GET("/api/v1/records", { params: { query }, signal }));
      return page.items.filter((record) => record.device_class === deviceClass);
    },
  });
}
