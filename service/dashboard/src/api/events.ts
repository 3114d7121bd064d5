import { type EventSourceMessage, EventSourceParserStream } from "eventsource-parser/stream";
import { ApiError } from "./errors";

/** `lost` only after the stream broke or was refused, so that a slow start shows no alarm. */
export type Connection = "connecting" | "open" | "lost";

export interface FollowOptions {
  /** Opens the stream. Throws `ApiError` for an answer that a retry would not change. */
  connect(lastEventId: string | null, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  onConnection(connection: Connection): void;
  signal: AbortSignal;
  /** Waits; rejects when aborted. Replaced in tests. */
  wait?(ms: number, signal: AbortSignal): Promise<void>;
}

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;

/** How long to wait before the given attempt (from 0), doubling up to 15 s. */
export function backoffMs(attempt: number): number {
  return Math.min(FIRST_DELAY_MS * 2 ** attempt, LONGEST_DELAY_MS);
}

/** Whether a retry would not change the answer. After 408 and 429, a later retry may succeed. */
export function isFinal(error: unknown): boolean {
  return (
    error instanceof ApiError &&
    error.status >= 400 &&
    error.status < 500 &&
    error.status !== 408 &&
    error.status !== 429
  );
}

/**
 * Server-sent events over fetch, since EventSource does not tell a refusal from a broken connection. Reconnects with backoff
 * and resumes after the last event seen. Ends when `signal` aborts; throws `ApiError` on a final refusal.
 */
export async function* followEvents(options: FollowOptions): AsyncGenerator<EventSourceMessage, void> {
  const { connect, onConnection, signal, wait = waitFor } = options;
  let lastEventId: string | null = null;
  let attempt = 0;
  onConnection("connecting");
  while (!signal.aborted) {
    try {
      const body = await connect(lastEventId, signal);
      onConnection("open");
      for await (const message of readMessages(body)) {
        // Only an event proves that the stream works: a proxy may accept and drop connections forever.
        attempt = 0;
        lastEventId = message.id ?? lastEventId;
        yield message;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (isFinal(error)) throw error;
    }
    if (signal.aborted) return;
    onConnection("lost");
    try {
      await wait(backoffMs(attempt++), signal);
    } catch {
      return;
    }
  }
}

/** The events in a stream of UTF-8 bytes. */
export async function* readMessages(body: ReadableStream<Uint8Array>): AsyncGenerator<EventSourceMessage> {
  const bytes = body as ReadableStream<BufferSource>;
  const messages = bytes.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  const reader = messages.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
