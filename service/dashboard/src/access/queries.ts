import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";
import type { NewToken, NewUser } from "../api/types";

export const ownUseQuery = queryOptions({
  queryKey: ["use"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/use", { signal })),
});

/** The user's own tokens, or those of all users, without tokens that expired or were revoked. */
export function tokensQuery(all: boolean) {
  return queryOptions({
    queryKey: ["tokens", all],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/tokens", { params: { query: { all, page_size: 500 } }, signal })),
  });
}

export const usersQuery = queryOptions({
  queryKey: ["users"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/v1/users", { signal })),
});

export const auditQuery = infiniteQueryOptions({
  queryKey: ["audit"],
  queryFn: ({ pageParam, signal }) =>
    unwrap(api.GET("/api/v1/audit", { params: { query: { page_size: 50, page_token: pageParam } }, signal })),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_page_token,
});

export function useMakeToken() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: NewToken) => unwrap(api.POST("/api/v1/tokens", { body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["tokens"] }),
  });
}

export function useRevokeToken() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      unwrap(api.DELETE("/api/v1/tokens/{token_id}", { params: { path: { token_id: id } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["tokens"] }),
  });
}

/** Creates a user and a first token, and returns the token's secret. */
export function useMakeUser() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (body: NewUser) => {
      await unwrap(api.POST("/api/v1/users", { body }));
      const first = { name: "first token", scope: body.role ?? "submit", user: body.name } as const;
      return unwrap(api.POST("/api/v1/tokens", { body: first }));
    },
    onSettled: () => queries.invalidateQueries(),
  });
}

export function useDisableUser() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ name, disabled }: { name: string; disabled: boolean }) =>
      unwrap(api.PATCH("/api/v1/users/{name}", { params: { path: { name } }, body: { disabled } })),
    onSuccess: () => queries.invalidateQueries(),
  });
}
