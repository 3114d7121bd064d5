import { useCallback } from "react";
import { useSearchParams } from "react-router";

export type Changes = Record<string, string | number | null>;

/**
 * What a view shows, kept in its address, so that a copied link shows the same. Returns the parameters, and a way to
 * change some of them: null takes one out. `push` makes a step that the back button undoes.
 */
export function useQueryState(): [URLSearchParams, (changes: Changes, push?: boolean) => void] {
  const [params, setParams] = useSearchParams();
  const change = useCallback(
    (changes: Changes, push = false) =>
      setParams(
        (current) => {
          const next = new URLSearchParams(current);
          for (const [name, value] of Object.entries(changes)) {
            if (value === null || value === "") next.delete(name);
            else next.set(name, String(value));
          }
          return next;
        },
        { replace: !push, preventScrollReset: true },
      ),
    [setParams],
  );
  return [params, change];
}

/** One yes or no of a view, off unless the address says otherwise. */
export function useFlag(name: string): [boolean, (on: boolean) => void] {
  const [params, change] = useQueryState();
  return [params.get(name) === "1", (on) => change({ [name]: on ? 1 : null })];
}
