import { expect, it } from "vitest";
import { ApiError } from "./errors";
import { isTemporary } from "./query-client";

it.each([429, 502, 503, 504])("an answer with status %i is asked for again", (status) => {
  expect(isTemporary(new ApiError(status, "Busy", "try later"))).toBe(true);
});

it.each([401, 404, 422, 500])("an answer with status %i is not asked for again", (status) => {
  expect(isTemporary(new ApiError(status, "No", "it stays so"))).toBe(false);
});

it("a request without an answer is repeated", () => {
  expect(isTemporary(new TypeError("network"))).toBe(true);
});
