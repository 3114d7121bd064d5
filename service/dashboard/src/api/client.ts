import createClient, { type Middleware } from "openapi-fetch";
import { problemToError, UnreachableError } from "./errors";
import type { paths } from "./schema";
import { readToken } from "./token";

type Listener = () => void;
const unauthorizedListeners = new Set<Listener>();

/** Calls `listener` whenever the service refuses the token. Returns the way to stop listening. */
export function onUnauthorized(listener: Listener): () => void {
  unauthorizedListeners.add(listener);
  return () => unauthorizedListeners.delete(listener);
}

/** Tells every listener that the service refused the token. */
export function announceUnauthorized(): void {
  for (const listener of unauthorizedListeners) listener();
}

export function authorization(token: string | null = readToken()): Record<string, string> {
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}

const authorize: Middleware = {
  onRequest({ request }) {
    for (const [name, value] of Object.entries(authorization())) request.headers.set(name, value);
    return request;
  },
  onResponse({ response }) {
    if (response.status === 401) announceUnauthorized();
  },
  onError({ error }) {
    return error instanceof DOMException && error.name === "AbortError" ? error : new UnreachableError();
  },
};

/** The REST interface, typed by the service's OpenAPI schema. */
export const api = createClient<paths>({ baseUrl: window.location.origin });
api.use(authorize);

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of a good answer; throws `ApiError` for any other. */
export async function unwrap<T>(pending: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await pending;
  if (!response.ok || data === undefined) throw problemToError(response.status, error);
  return data;
}

/** Whether the service accepts `token`. Throws `ApiError` or `UnreachableError` where it cannot say. */
export async function isTokenAccepted(token: string): Promise<boolean> {
  const response = await fetch("/api/v1/jobs?page_size=1", { headers: authorization(token) }).catch(() => {
    throw new UnreachableError();
  });
  if (response.status === 401) return false;
  if (!response.ok) throw problemToError(response.status, await response.json().catch(() => null));
  return true;
}
