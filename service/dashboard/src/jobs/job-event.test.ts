import { expect, it } from "vitest";
import { parseEvent } from "./job-event";

it("the name of an event says what its data is", () => {
  const data = { state: "running", error: null, at: "2026-03-01T12:00:00Z" };
  expect(parseEvent({ id: "7", event: "job", data: JSON.stringify(data) })).toEqual({
    id: "7",
    type: "job",
    data,
  });
});

it("an event of an unknown kind is passed over", () => {
  expect(parseEvent({ id: "8", event: "weather", data: "{}" })).toBeNull();
  expect(parseEvent({ id: "9", event: undefined, data: "{}" })).toBeNull();
});
