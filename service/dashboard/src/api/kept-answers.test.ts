import createClient from "openapi-fetch";
import { expect, it } from "vitest";
import { keptAnswers } from "./kept-answers";
import type { paths } from "./schema";

/** Answers with the first of `texts` that the request does not have yet, and with 304 if it has it. */
function client(texts: string[]) {
  const asked: (string | null)[] = [];
  const api = createClient<paths>({
    baseUrl: "http://service",
    async fetch(request) {
      const tag = request.headers.get("If-None-Match");
      asked.push(tag);
      const text = texts.length > 1 ? (texts.shift() as string) : (texts[0] as string);
      const headers = { ETag: `"${text}"`, "Content-Type": "application/json" };
      return tag === headers.ETag
        ? new Response(null, { status: 304, headers })
        : new Response(text, { headers });
    },
  });
  api.use(keptAnswers());
  return { asked, get: async () => (await api.GET("/api/v1/overview")).data as unknown };
}

it("an answer that is the same is not sent again", async () => {
  const { asked, get } = client(["1", "1", "2", "2"]);
  expect([await get(), await get(), await get(), await get()]).toEqual([1, 1, 2, 2]);
  expect(asked).toEqual([null, '"1"', '"1"', '"2"']);
});

it("a request that was sent before another was answered gets what it has the tag of", async () => {
  const { get } = client(["1", "2", "1"]);
  expect(await get()).toBe(1);
  expect(await Promise.all([get(), get()])).toEqual([2, 1]);
});
