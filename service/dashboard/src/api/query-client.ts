import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "./errors";

/** Interval at which changing lists are read again. */
export const REFRESH_MS = 3_000;

const TEMPORARY: readonly number[] = [429, 502, 503, 504];

/** No answer at all, or one that says to come back later. */
export function isTemporary(error: unknown): boolean {
  return !(error instanceof ApiError) || TEMPORARY.includes(error.status);
}

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 1_000,
        // Errors that are not temporary would occur again.
        retry: (failures, error) => failures < 2 && isTemporary(error),
      },
    },
  });
}
