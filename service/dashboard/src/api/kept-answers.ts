import type { Middleware } from "openapi-fetch";

/** The number of answers that are kept. Not tuned. */
const MOST = 50;

interface Answer {
  tag: string;
  text: string;
}

/**
 * Sends the tag of the latest answer with the next request for it. The service then answers 304 while the answer is the same,
 * and the kept one is used. Answers are kept in memory, because browsers may not store what a user sees.
 */
export function keptAnswers(): Middleware {
  const latest = new Map<string, Answer>();
  const sent = new WeakMap<Request, Answer>();
  return {
    onRequest({ request }) {
      const answer = request.method === "GET" ? latest.get(request.url) : undefined;
      if (answer === undefined) return;
      sent.set(request, answer);
      request.headers.set("If-None-Match", answer.tag);
    },
    async onResponse({ request, response }) {
      const answer = sent.get(request);
      if (response.status === 304 && answer !== undefined) {
        return new Response(answer.text, { headers: { "Content-Type": "application/json" } });
      }
      const tag = response.headers.get("ETag");
      if (request.method !== "GET" || !response.ok || tag === null) return;
      latest.delete(request.url);
      latest.set(request.url, { tag, text: await response.clone().text() });
      for (const url of latest.keys()) {
        if (latest.size > MOST) latest.delete(url);
      }
    },
  };
}
