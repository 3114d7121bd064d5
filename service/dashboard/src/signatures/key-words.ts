import type { SignedBy, SigningKey } from "../api/types";

/** Says why nothing that a key has signed holds, by the keys that the service publishes; null if it holds. */
export function keyComplaint(id: string, keys: readonly SigningKey[]): string | null {
  const key = keys.find((each) => each.id === id);
  if (key === undefined) return "which is none of this service's keys";
  return key.revoked_at === null || key.revoked_at === undefined
    ? null
    : "which is revoked: others may have it";
}

const WORTH: Record<SignedBy, string> = {
  "this service": "It was raced here before its record was exported.",
  "another deployment":
    "Another deployment can be anybody, because the key comes with the certificate. If you have its keys from its owner, verify the certificate with them.",
  "a revoked key": "Others may have the key, so anybody may have signed the certificate.",
};

/** Says what an imported certificate is worth, by whose key has signed it. */
export function importedWorth(signedBy: SignedBy): string {
  return WORTH[signedBy];
}
