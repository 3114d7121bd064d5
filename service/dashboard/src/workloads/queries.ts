import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";

const DECISION_ROWS = 500;
const HISTORY_POINTS = 500;

function options<Data>(
  what: string,
  hash: string,
  deviceClass: string,
  read: (signal: AbortSignal) => Promise<Data>,
) {
  return queryOptions({
    queryKey: ["workload", hash, what, deviceClass],
    queryFn: ({ signal }) => read(signal),
    staleTime: 30_000,
  });
}

export function workloadQuery(hash: string) {
  return options("workload", hash, "", (signal) =>
    unwrap(
      api.GET("/api/v1/workloads/{workload_hash}", { params: { path: { workload_hash: hash } }, signal }),
    ),
  );
}

/** Certificates in the order of time, of every device class. */
export function historyQuery(hash: string) {
  return options("history", hash, "", async (signal) => {
    const page = await unwrap(
      api.GET("/api/v1/workloads/{workload_hash}/history", {
        params: { path: { workload_hash: hash }, query: { page_size: HISTORY_POINTS } },
        signal,
      }),
    );
    return page.items;
  });
}

export function decisionsQuery(hash: string, deviceClass: string) {
  return options("decisions", hash, deviceClass, (signal) =>
    unwrap(
      api.GET("/api/v1/workloads/{workload_hash}/decisions", {
        params: {
          path: { workload_hash: hash },
          query: { device_class: deviceClass || undefined, limit: DECISION_ROWS },
        },
        signal,
      }),
    ),
  );
}

export function predictionsQuery(hash: string, deviceClass: string) {
  return options("predictions", hash, deviceClass, (signal) =>
    unwrap(
      api.GET("/api/v1/workloads/{workload_hash}/predictions", {
        params: { path: { workload_hash: hash }, query: { device_class: deviceClass || undefined } },
        signal,
      }),
    ),
  );
}

export function rooflineQuery(hash: string, deviceClass: string) {
  return options("roofline", hash, deviceClass, (signal) =>
    unwrap(
      api.GET("/api/v1/workloads/{workload_hash}/roofline", {
        params: { path: { workload_hash: hash }, query: { device_class: deviceClass || undefined } },
        signal,
      }),
    ),
  );
}
