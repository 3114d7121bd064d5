import { ApiError } from "../api/errors";
import { signIn, wasSignedIn } from "../api/session";
import { splitCredential } from "./address";

/** The state in which a page starts. `refused`: why the credential in the address was not accepted. */
export interface Opening {
  signedIn: boolean;
  refused: string | null;
}

/**
 * Finds out whether this browser is signed in, and if not, signs in with the credential in the address. An existing
 * session is kept: a link must not sign its reader in as another user. Called once, before the first render.
 */
export async function openSession(): Promise<Opening> {
  const { credential, address } = splitCredential(window.location.href);
  if (address !== window.location.pathname + window.location.search + window.location.hash) {
    window.history.replaceState(null, "", address);
  }
  // Without a session, the request would fail, and browsers would show the error in their console.
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

/** Reloads the page if an address with a credential is pasted into an open page, which alone loads nothing. */
export function reloadForCredentials(): void {
  window.addEventListener("hashchange", () => {
    if (splitCredential(window.location.href).credential !== null) window.location.reload();
  });
}

async function isSignedIn(): Promise<boolean> {
  const answer = await fetch("/api/v1/me").catch(() => null);
  return answer?.ok ?? false;
}
