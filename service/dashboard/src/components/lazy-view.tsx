import { useQuery } from "@tanstack/react-query";
import type { ComponentType, ReactNode } from "react";
import { UnreachableError } from "../api/errors";
import { ErrorNotice } from "./error-notice";
import { Waiting } from "./waiting";

/**
 * A part of the page whose code is loaded when it is first shown. A failed load can be repeated, which React's own `lazy`
 * does not support.
 */
export function lazyView<Props extends object>(
  name: string,
  load: () => Promise<{ default: ComponentType<Props> }>,
  waiting: (props: Props) => ReactNode = () => <Waiting />,
): ComponentType<Props> {
  const query = {
    queryKey: ["view", name],
    queryFn: () =>
      load().catch(() => {
        throw new UnreachableError();
      }),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
    // Also when offline: the browser may have it.
    networkMode: "always" as const,
  };
  return function LazyView(props: Props) {
    const { data, error, refetch } = useQuery(query);
    if (data) return <data.default {...props} />;
    if (error) return <ErrorNotice error={error} onRetry={() => refetch()} />;
    return waiting(props);
  };
}
