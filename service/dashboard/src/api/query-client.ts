import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "./errors";

/** How often a list that changes by itself is read again. */
export const REFRESH_MS = 3_000;

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
