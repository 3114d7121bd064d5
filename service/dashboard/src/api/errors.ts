/** The service answered with an error. `message` is the problem's `detail`, ready to be shown. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    detail: string,
  ) {
    super(detail);
    this.name = "ApiError";
  }
}

/** The service did not answer at all. */
export class UnreachableError extends Error {
  readonly title = "The service cannot be reached";

  constructor() {
    super(
      "The service did not answer. It may have stopped, or the network is down. Check that the service is running, then try again.",
    );
    this.name = "UnreachableError";
  }
}

/** Reads an RFC 9457 body if there is one; a proxy may have answered in another format. */
export function problemToError(status: number, body: unknown): ApiError {
  const problem = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const title = typeof problem.title === "string" ? problem.title : `Error ${status}`;
  const detail =
    typeof problem.detail === "string"
      ? problem.detail
      : `The service answered with HTTP status ${status} and no explanation.`;
  return new ApiError(status, title, detail);
}

export function titleOf(error: Error): string {
  return error instanceof ApiError || error instanceof UnreachableError
    ? error.title
    : "Something went wrong";
}
