import type { ReactNode } from "react";
import { ApiError } from "../api/errors";
import { ErrorNotice } from "./error-notice";
import { NotFound } from "./not-found";
import { Waiting } from "./waiting";

interface ReadyProps<Data> {
  query: { data: Data | undefined; error: Error | null; refetch(): unknown };
  /** Kind of the requested object, if it may not exist: the whole view then says so. */
  what?: string;
  waiting?: ReactNode;
  children(data: Data): ReactNode;
}

/** Shows the result of a query, or that it is loading, or its error. */
export function Ready<Data>({ query, what, waiting = <Waiting />, children }: ReadyProps<Data>) {
  const { data, error, refetch } = query;
  if (what !== undefined && error instanceof ApiError && error.status === 404)
    return <NotFound what={what} />;
  return (
    <>
      {error && <ErrorNotice error={error} onRetry={() => refetch()} />}
      {data !== undefined ? children(data) : error ? null : waiting}
    </>
  );
}
