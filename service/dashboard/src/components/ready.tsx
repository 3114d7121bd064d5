import type { ReactNode } from "react";
import { ApiError } from "../api/errors";
import { ErrorNotice } from "./error-notice";
import { NotFound } from "./not-found";
import { Waiting } from "./waiting";

interface ReadyProps<Data> {
  query: { data: Data | undefined; error: Error | null; refetch(): unknown };
  /** What is asked for, where it may not be there: the whole view then says that it is not. */
  what?: string;
  waiting?: ReactNode;
  children(data: Data): ReactNode;
}

/** What a query brought; until then that it is on its way, or why it did not come. */
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
