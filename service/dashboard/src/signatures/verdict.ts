import type { RecheckResult, SignedDocument } from "../api/types";

/** The result in the signed document of a recheck; null if a later version of the service has written another form. */
export function signedResult({ document }: SignedDocument): RecheckResult | null {
  const { format, kind, result } = JSON.parse(document);
  return format === 1 && kind === "recheck" ? result : null;
}
