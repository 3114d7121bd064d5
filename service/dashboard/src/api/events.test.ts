import { describe, expect, it } from "vitest";
import { ApiError } from "./errors";
import { backoffMs, type Connection, followEvents, readMessages } from "./events";

function stream(...chunks: string[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(encoder.encode(chunk));
      controller.close();
    },
  });
}

describe("readMessages", () => {
  it("joins events that arrive in pieces and passes over comments", async () => {
    const messages = [];
    for await (const message of readMessages(
      stream(": ping\n\nid: 4\nevent: tri", 'al\ndata: {"a":', "1}\n\n"),
    )) {
      messages.push(message);
    }
    expect(messages).toEqual([expect.objectContaining({ id: "4", event: "trial", data: '{"a":1}' })]);
  });

  it("keeps a letter whole that is cut between two chunks", async () => {
    const bytes = new TextEncoder().encode("data: µs\n\n");
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytes.slice(0, 7));
        controller.enqueue(bytes.slice(7));
        controller.close();
      },
    });
    const messages = [];
    for await (const message of readMessages(body)) messages.push(message.data);
    expect(messages).toEqual(["µs"]);
  });
});

interface Run {
  asked: (string | null)[];
  seen: string[];
  connections: Connection[];
  waits: number[];
}

/** Follows a service that gives `answers` in turn, until they are used up. */
async function follow(answers: (ReadableStream<Uint8Array> | Error)[]): Promise<Run> {
  const run: Run = { asked: [], seen: [], connections: [], waits: [] };
  const abort = new AbortController();
  const events = followEvents({
    async connect(lastEventId) {
      run.asked.push(lastEventId);
      const answer = answers.shift();
      if (answer === undefined) {
        abort.abort();
        throw new Error("no more answers");
      }
      if (answer instanceof Error) throw answer;
      return answer;
    },
    onConnection: (connection) => run.connections.push(connection),
    signal: abort.signal,
    wait: async (ms) => {
      run.waits.push(ms);
    },
  });
  for await (const { data } of events) run.seen.push(data);
  return run;
}

describe("followEvents", () => {
  it("reconnects when the stream ends and resumes after the last event", async () => {
    const run = await follow([stream("id: 1\ndata: a\n\nid: 2\ndata: b\n\n"), stream("id: 3\ndata: c\n\n")]);
    expect(run.seen).toEqual(["a", "b", "c"]);
    expect(run.asked).toEqual([null, "2", "3"]);
    expect(run.connections).toEqual(["connecting", "open", "lost", "open", "lost"]);
  });

  it("waits longer after each failure, and little again once events flow", async () => {
    const down = new TypeError("network");
    const run = await follow([
      down,
      down,
      new ApiError(503, "Unavailable", ""),
      stream("id: 1\ndata: a\n\n"),
      down,
    ]);
    expect(run.waits).toEqual([500, 1_000, 2_000, 500, 1_000]);
    expect(run.asked.at(-1)).toBe("1");
  });

  it("gives up when the service will not change its mind", async () => {
    await expect(follow([new ApiError(404, "Not found", "There is no job 7.")])).rejects.toThrow(
      "There is no job 7.",
    );
  });

  it("asks again when told to slow down", async () => {
    const run = await follow([new ApiError(429, "Too many requests", ""), stream("id: 1\ndata: a\n\n")]);
    expect(run.seen).toEqual(["a"]);
  });
});

it("the wait has a limit", () => {
  expect(backoffMs(40)).toBe(15_000);
});
