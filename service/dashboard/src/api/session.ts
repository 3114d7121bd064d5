import { problemToError, UnreachableError } from "./errors";

/** Marks that there is a session, because scripts cannot see its cookie. */
const MARK = "loopwright.signed-in";

/** Whether this browser signed in and has not signed out. Its session may still have expired. */
export function wasSignedIn(): boolean {
  return window.localStorage.getItem(MARK) !== null;
}

/** Forgets a session that the service has ended. */
export function forgetSession(): void {
  window.localStorage.removeItem(MARK);
}

/** Signs this browser in: the service answers with a cookie, which no script can read. Throws `ApiError`. */
export async function signIn(scheme: "Code" | "Bearer", secret: string): Promise<void> {
  await change("POST", { Authorization: `${scheme} ${secret}` });
  window.localStorage.setItem(MARK, "yes");
}

/** Ends the session of this browser. */
export async function signOut(): Promise<void> {
  await change("DELETE", {});
}

// Does not use `api`, which treats status 401 as the end of a session.
async function change(method: string, headers: Record<string, string>): Promise<void> {
  const response = await fetch("/api/v1/session", { method, headers }).catch(() => {
    throw new UnreachableError();
  });
  if (!response.ok) throw problemToError(response.status, await response.json().catch(() => null));
}
