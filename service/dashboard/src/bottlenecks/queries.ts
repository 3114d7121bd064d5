import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";

/** What limits the functions of a job, which decisions mattered, and where the time is left. */
export function bottlenecksQuery(jobId: string) {
  return queryOptions({
    queryKey: ["job", jobId, "bottlenecks"],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/jobs/{job_id}/bottlenecks", { params: { path: { job_id: jobId } }, signal })),
    staleTime: 30_000,
  });
}
