import {
  infiniteQueryOptions,
  QueryClient,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { api, unwrap } from "./client";
import { ApiError } from "./errors";
import { isFinished, type Job, type Trial } from "./types";

const LIST_REFRESH_MS = 3_000;
const PAGE_SIZE = 50;
const TRIALS_PAGE_SIZE = 500;

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 1_000,
        // What the service refused once it will refuse again; only its silence and its own failures pass.
        retry: (failures, error) => failures < 2 && !(error instanceof ApiError && error.status < 500),
      },
    },
  });
}

export const jobsQuery = infiniteQueryOptions({
  queryKey: ["jobs"],
  queryFn: ({ pageParam, signal }) =>
    unwrap(
      api.GET("/api/v1/jobs", { params: { query: { page_size: PAGE_SIZE, page_token: pageParam } }, signal }),
    ),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page) => page.next_page_token ?? undefined,
  refetchInterval: LIST_REFRESH_MS,
});

/** `refreshMs` is how often to ask while the job is unfinished. */
export function jobQuery(id: string, refreshMs: number) {
  return queryOptions({
    queryKey: ["job", id],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/jobs/{job_id}", { params: { path: { job_id: id } }, signal })),
    refetchInterval: ({ state }) => (state.data && isFinished(state.data.state) ? false : refreshMs),
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

export const bestsQuery = infiniteQueryOptions({
  queryKey: ["bests"],
  queryFn: ({ pageParam, signal }) =>
    unwrap(
      api.GET("/api/v1/bests", {
        params: { query: { page_size: PAGE_SIZE, page_token: pageParam } },
        signal,
      }),
    ),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page) => page.next_page_token ?? undefined,
});

export function recordQuery(id: string) {
  return queryOptions({
    queryKey: ["record", id],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/records/{record_id}", { params: { path: { record_id: id } }, signal })),
  });
}

export const workersQuery = queryOptions({
  queryKey: ["workers"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/workers", { signal })),
  refetchInterval: 10_000,
});

export const versionQuery = queryOptions({
  queryKey: ["version"],
  queryFn: ({ signal }) => unwrap(api.GET("/version", { signal })),
  staleTime: Number.POSITIVE_INFINITY,
});

export function useCancelJob(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => unwrap(api.POST("/api/v1/jobs/{job_id}/cancel", { params: { path: { job_id: id } } })),
    onSuccess: (job: Job) => queries.setQueryData(["job", id], job),
  });
}
