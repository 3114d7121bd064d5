import { problemToError, UnreachableError } from "./errors";

/** That there is a session: no script can see its cookie. */
const MARK = "loopwright.signed-in";

/** Whether this browser signed in and did not sign out since; its session may have ended for all that. */
export function wasSignedIn(): boolean {
  return window.localStorage.getItem(MARK) !== null;
}

/** What the service has ended is no session any more. */
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

// Not by `api`, to which a refusal means that a session has ended.
async function change(method: string, headers: Record<string, string>): Promise<void> {
  const response = await fetch("/api/v1/session", { method, headers }).catch(() => {
    throw new UnreachableError();
  });
  if (!response.ok) throw problemToError(response.status, await response.json().catch(() => null));
}
