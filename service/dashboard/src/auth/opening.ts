import { ApiError } from "../api/errors";
import { signIn, wasSignedIn } from "../api/session";
import { splitCredential } from "./address";

/** How a page begins. `refused` says why what the address brought was not taken. */
export interface Opening {
  signedIn: boolean;
  refused: string | null;
}

/**
 * Finds out whether this browser is signed in, and if not, signs in with what the address brings. A session that
 * there is stays: a link must not make somebody else of its reader. Called once, before the first render.
 */
export async function openSession(): Promise<Opening> {
  const { credential, address } = splitCredential(window.location.href);
  if (address !== window.location.pathname + window.location.search + window.location.hash) {
    window.history.replaceState(null, "", address);
  }
  // Where an earlier release kept the token.
  window.localStorage.removeItem("loopwright.token");
  // Where there is no session, asking for it would be answered by an error, which browsers show in their console.
  if (wasSignedIn() && (credential === null || (await isSignedIn())))
    return { signedIn: true, refused: null };
  if (credential === null) return { signedIn: false, refused: null };
  try {
    await signIn(credential.scheme, credential.secret);
    return { signedIn: true, refused: null };
  } catch (error) {
    return { signedIn: false, refused: error instanceof ApiError ? error.message : String(error) };
  }
}

/** Begins anew where an address to sign in with is pasted over that of an open page, which loads nothing by itself. */
export function reloadForCredentials(): void {
  window.addEventListener("hashchange", () => {
    if (splitCredential(window.location.href).credential !== null) window.location.reload();
  });
}

async function isSignedIn(): Promise<boolean> {
  const answer = await fetch("/api/v1/me").catch(() => null);
  return answer?.ok ?? false;
}
