/** A credential in an address: a code that is valid once, or the token of a guest link. */
export interface Credential {
  scheme: "Code" | "Bearer";
  secret: string;
}

/**
 * Takes `#code=…` or `#guest=…` out of an address, so that it is neither bookmarked nor shared, and returns what
 * remains. Browsers do not send the part behind `#`, so that no log has it.
 */
export function splitCredential(address: string): { credential: Credential | null; address: string } {
  const url = new URL(address);
  const parameters = new URLSearchParams(url.hash.slice(1));
  const code = parameters.get("code")?.trim();
  const guest = parameters.get("guest")?.trim();
  if (code === undefined && guest === undefined) {
    return { credential: null, address: url.pathname + url.search + url.hash };
  }
  const credential: Credential | null = code
    ? { scheme: "Code", secret: code }
    : guest
      ? { scheme: "Bearer", secret: guest }
      : null;
  return { credential, address: url.pathname + url.search };
}
