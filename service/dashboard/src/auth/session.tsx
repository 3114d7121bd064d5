import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, use, useCallback, useEffect, useMemo, useState } from "react";
import { onUnauthorized } from "../api/client";
import { clearToken, readToken, writeToken } from "../api/token";

/** `rejected`: there was a token, and the service refused it. */
type SessionState = "signed-out" | "rejected" | "signed-in";

interface Session {
  state: SessionState;
  signIn(token: string): void;
  signOut(): void;
}

const SessionContext = createContext<Session | null>(null);

export function SessionProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const [state, setState] = useState<SessionState>(() => (readToken() ? "signed-in" : "signed-out"));

  const leave = useCallback(
    (next: "signed-out" | "rejected") => {
      clearToken();
      queries.clear();
      setState(next);
    },
    [queries],
  );

  useEffect(() => onUnauthorized(() => leave("rejected")), [leave]);

  const session = useMemo(
    () => ({
      state,
      signIn(token: string) {
        writeToken(token);
        setState("signed-in");
      },
      signOut: () => leave("signed-out"),
    }),
    [state, leave],
  );
  return <SessionContext value={session}>{children}</SessionContext>;
}

export function useSession(): Session {
  const session = use(SessionContext);
  if (session === null) throw new Error("useSession is used outside SessionProvider");
  return session;
}
