import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, use, useCallback, useEffect, useMemo, useState } from "react";
import { onUnauthorized } from "../api/client";
import { forgetSession, signOut } from "../api/session";
import type { Opening } from "./opening";

interface Session {
  signedIn: boolean;
  /** Why this browser is no longer signed in, or could not be signed in; null at first. */
  refused: string | null;
  entered(): void;
  signOut(): void;
}

const SessionContext = createContext<Session | null>(null);

const ENDED = "You were signed out because the session expired or was revoked. Sign in again.";

export function SessionProvider({ opening, children }: { opening: Promise<Opening>; children: ReactNode }) {
  const queries = useQueryClient();
  const [state, setState] = useState<Opening | null>(null);

  useEffect(() => {
    opening.then(setState);
  }, [opening]);

  const leave = useCallback(
    (refused: string | null) => {
      forgetSession();
      queries.clear();
      setState({ signedIn: false, refused });
    },
    [queries],
  );

  useEffect(() => onUnauthorized(() => leave(ENDED)), [leave]);

  const session = useMemo(
    () =>
      state && {
        ...state,
        entered: () => setState({ signedIn: true, refused: null }),
        signOut: () => void signOut().finally(() => leave(null)),
      },
    [state, leave],
  );
  return session && <SessionContext value={session}>{children}</SessionContext>;
}

export function useSession(): Session {
  const session = use(SessionContext);
  if (session === null) throw new Error("useSession is used outside SessionProvider");
  return session;
}
