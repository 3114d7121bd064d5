import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";
import { REFRESH_MS } from "../api/query-client";
import {
  type DescribeJob,
  isFinished,
  type Job,
  type JobState,
  type Resubmit,
  type Trial,
} from "../api/types";

const PAGE_SIZE = 50;
const DAY_MS = 86_400_000;
const TRIALS_PAGE_SIZE = 500;

/** What narrows the list of jobs. */
export interface JobFilter {
  state?: JobState | undefined;
  /** Part of a name, or an id's beginning. */
  q?: string;
  owner?: string;
  /** Age of the oldest. */
  days?: number;
  tag?: string;
  sort?: JobSort;
}

export type JobSort = "created" | "name" | "gain";

/** Jobs that a filter lets through, the newest first unless sorted otherwise. */
export function jobsQuery(filter: JobFilter = {}) {
  const { state, q, owner, days, tag, sort } = filter;
  return infiniteQueryOptions({
    queryKey: ["jobs", "list", filter],
    queryFn: ({ pageParam, signal }) => {
      const since = days ? new Date(Date.now() - days * DAY_MS).toISOString() : undefined;
      const narrowed = {
        state: state && [state],
        q: q || undefined,
        owner: owner || undefined,
        since,
        tag: tag || undefined,
        sort,
      };
      return unwrap(
        api.GET("/api/v1/jobs", {
          params: { query: { ...narrowed, page_size: PAGE_SIZE, page_token: pageParam } },
          signal,
        }),
      );
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_page_token ?? undefined,
    refetchInterval: REFRESH_MS,
  });
}

/** `refreshMs` is how often to ask while the job is unfinished. */
export function jobQuery(id: string, refreshMs: number) {
  return queryOptions({
    queryKey: ["job", id],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/jobs/{job_id}", { params: { path: { job_id: id } }, signal })),
    refetchInterval: ({ state }) => (state.data && isFinished(state.data.state) ? false : refreshMs),
  });
}

/** The jobs for the targets of one submission, in their order. */
export function groupQuery(group: string) {
  return queryOptions({
    queryKey: ["jobs", "group", group],
    queryFn: ({ signal }) => unwrap(api.GET("/api/v1/jobs", { params: { query: { group } }, signal })),
    refetchInterval: ({ state }) =>
      state.data?.items.every((job) => isFinished(job.state)) ? false : REFRESH_MS,
  });
}

/** The latest comparison of the job's model with other engines; null if none was stored. */
export function comparisonQuery(id: string) {
  return queryOptions({
    queryKey: ["job", id, "comparison"],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/jobs/{job_id}/comparison", { params: { path: { job_id: id } }, signal })),
  });
}

/** The job's gate with its result; null for a job without a gate. */
export function gateQuery(id: string) {
  return queryOptions({
    queryKey: ["job", id, "gate"],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/jobs/{job_id}/gate", { params: { path: { job_id: id } }, signal })),
    refetchInterval: ({ state }) => (state.data && !state.data.result ? REFRESH_MS : false),
  });
}

/** The bests that the job races again; none for other jobs. */
export function rechecksQuery(id: string) {
  return queryOptions({
    queryKey: ["job", id, "rechecks"],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/jobs/{job_id}/rechecks", { params: { path: { job_id: id } }, signal })),
    refetchInterval: ({ state }) =>
      state.data?.items.some((each) => each.result === null) ? REFRESH_MS : false,
  });
}

/** Every trial that the job has so far, read page by page. */
export function trialsQuery(id: string) {
  return queryOptions({
    queryKey: ["job", id, "trials"],
    queryFn: async ({ signal }) => {
      const trials: Trial[] = [];
      let pageToken: string | undefined;
      do {
        const page = await unwrap(
          api.GET("/api/v1/jobs/{job_id}/trials", {
            params: { path: { job_id: id }, query: { page_size: TRIALS_PAGE_SIZE, page_token: pageToken } },
            signal,
          }),
        );
        trials.push(...page.items);
        pageToken = page.next_page_token ?? undefined;
      } while (pageToken !== undefined);
      return trials;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useCancelJob(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => unwrap(api.POST("/api/v1/jobs/{job_id}/cancel", { params: { path: { job_id: id } } })),
    onSuccess: (job: Job) => queries.setQueryData(["job", id], job),
  });
}

export function useDescribeJob(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: DescribeJob) =>
      unwrap(api.PATCH("/api/v1/jobs/{job_id}", { params: { path: { job_id: id } }, body })),
    onSuccess: (job: Job) => {
      queries.setQueryData(["job", id], job);
      return queries.invalidateQueries({ queryKey: ["jobs"] });
    },
  });
}

export function useResubmitJob(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Resubmit) =>
      unwrap(api.POST("/api/v1/jobs/{job_id}/resubmit", { params: { path: { job_id: id } }, body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["jobs"] }),
  });
}
