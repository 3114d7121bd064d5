const STORAGE_KEY = "loopwright.token";

/**
 * Takes `?token=…` out of the address, so that it is neither bookmarked nor shared, and returns what remains.
 * `token` is null where the address has none.
 */
export function splitToken(address: string): { token: string | null; address: string } {
  const url = new URL(address);
  const token = url.searchParams.get("token");
  url.searchParams.delete("token");
  return { token: token?.trim() || null, address: url.pathname + url.search + url.hash };
}

/** Moves a token from the address bar into storage. Called once, before the first render. */
export function adoptTokenFromAddress(): void {
  const { token, address } = splitToken(window.location.href);
  if (token === null) return;
  writeToken(token);
  window.history.replaceState(null, "", address);
}

// localStorage rather than sessionStorage: a link opened in a new tab must not ask for the token again.
export function readToken(): string | null {
  return window.localStorage.getItem(STORAGE_KEY);
}

export function writeToken(token: string): void {
  window.localStorage.setItem(STORAGE_KEY, token);
}

export function clearToken(): void {
  window.localStorage.removeItem(STORAGE_KEY);
}
