import { useCallback } from "react";
import { useLocation, useNavigate, useSearchParams } from "react-router";

export type Changes = Record<string, string | number | null | string[]>;

/**
 * What a view shows, kept in its address, so that a copied link shows the same. Returns the parameters, and a way to
 * change some of them: null takes one out, a list puts in several. `push` makes a step that the back button undoes.
 */
export function useQueryState(): [URLSearchParams, (changes: Changes, push?: boolean) => void] {
  const [params] = useSearchParams();
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const change = useCallback(
    (changes: Changes, push = false) => {
      // The view stays until the next one has loaded; what was typed before a link was followed must not call it back.
      if (window.location.pathname !== pathname) return;
      // The address as it is now, not as it was when this was rendered: a late change must not undo an earlier one.
      const { search: before } = window.location;
      const next = new URLSearchParams(before);
      for (const [name, value] of Object.entries(changes)) {
        next.delete(name);
        for (const each of Array.isArray(value) ? value : [value]) {
          if (each !== null && each !== "") next.append(name, String(each));
        }
      }
      const search = String(next);
      if (search === String(new URLSearchParams(before))) return;
      navigate({ search }, { replace: !push, preventScrollReset: true });
    },
    [navigate, pathname],
  );
  return [params, change];
}

/** A boolean of a view, false unless the address sets it. */
export function useFlag(name: string): [boolean, (on: boolean) => void] {
  const [params, change] = useQueryState();
  return [params.get(name) === "1", (on) => change({ [name]: on ? 1 : null })];
}
