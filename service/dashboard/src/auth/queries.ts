import { queryOptions, useMutation, useQuery } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";
import type { Job, Right } from "../api/types";

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/me", { signal })),
  staleTime: 5 * 60_000,
});

/** Whether the user has this right. Actions without the right are hidden; the service would refuse them. */
export function useMay(right: Right): boolean {
  return useQuery(meQuery).data?.rights.includes(right) ?? false;
}

/** Whether the user may cancel a job: users their own jobs, admins any. */
export function useMayCancel(job: Job): boolean {
  return useMayChange(job, "cancel");
}

/** Whether the user may change a job's tags and description. */
export function useMayDescribe(job: Job): boolean {
  return useMayChange(job, "submit");
}

function useMayChange(job: Job, right: Right): boolean {
  const me = useQuery(meQuery).data;
  if (!me?.rights.includes(right)) return false;
  return job.owner === me.user || me.rights.includes("administer");
}

export function useGuestLink() {
  return useMutation({
    mutationFn: (days: number) => unwrap(api.POST("/api/v1/guest-links", { body: { days } })),
  });
}
