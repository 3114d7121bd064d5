import createClient, { type Middleware } from "openapi-fetch";
import { problemToError, UnreachableError } from "./errors";
import { keptAnswers } from "./kept-answers";
import type { paths } from "./schema";

type Listener = () => void;
const unauthorizedListeners = new Set<Listener>();

/** Calls `listener` whenever the service answers that this browser is not signed in. Returns a function that stops this. */
export function onUnauthorized(listener: Listener): () => void {
  unauthorizedListeners.add(listener);
  return () => unauthorizedListeners.delete(listener);
}

/** Tells every listener that this browser is not signed in any more. */
export function announceUnauthorized(): void {
  for (const listener of unauthorizedListeners) listener();
}

const watch: Middleware = {
  onResponse({ response }) {
    if (response.status === 401) announceUnauthorized();
  },
  onError({ error }) {
    return error instanceof DOMException && error.name === "AbortError" ? error : new UnreachableError();
  },
};

/** The REST interface, typed by the service's OpenAPI schema. The session's cookie goes along by itself. */
export const api = createClient<paths>({ baseUrl: window.location.origin });
api.use(watch);
api.use(keptAnswers());

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns the body of a successful answer; throws `ApiError` for any other. */
export async function unwrap<T>(pending: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await pending;
  if (!response.ok || data === undefined) throw problemToError(response.status, error);
  return data;
}
