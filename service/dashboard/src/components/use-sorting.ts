import type { SortingState, Updater } from "@tanstack/react-table";
import { useMemo } from "react";
import { useQueryState } from "./use-query-state";

/** How a table is sorted, kept in the address: `?sort=best`, or `?sort=-best` for the largest first. */
export function useSorting(param: string): {
  sorting: SortingState;
  onSortingChange(updater: Updater<SortingState>): void;
} {
  const [params, change] = useQueryState();
  const word = params.get(param);
  return useMemo(() => {
    const sorting = parseSorting(word);
    return {
      sorting,
      onSortingChange(updater) {
        change({ [param]: writeSorting(typeof updater === "function" ? updater(sorting) : updater) });
      },
    };
  }, [word, param, change]);
}

export function parseSorting(word: string | null): SortingState {
  if (!word) return [];
  return word.startsWith("-") ? [{ id: word.slice(1), desc: true }] : [{ id: word, desc: false }];
}

export function writeSorting([first]: SortingState): string | null {
  return first === undefined ? null : `${first.desc ? "-" : ""}${first.id}`;
}
