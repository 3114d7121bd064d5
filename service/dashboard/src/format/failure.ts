const WORDS: Record<string, string> = {
  COMPILE: "did not compile",
  TIMEOUT: "timed out",
  CRASH: "crashed",
  WRONG_RESULT: "wrong result",
  DEVICE_LOST: "device lost",
  KILLED: "killed",
};

/** Describes a kind of failure; returns an unknown kind unchanged. */
export function formatFailureKind(kind: string): string {
  return WORDS[kind] ?? kind;
}
