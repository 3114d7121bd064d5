const WORDS: Record<string, string> = {
  COMPILE: "did not compile",
  TIMEOUT: "timed out",
  CRASH: "crashed",
  WRONG_RESULT: "wrong result",
  DEVICE_LOST: "device lost",
  KILLED: "killed",
};

/** A kind of failure in words; an unknown kind as it is. */
export function formatFailureKind(kind: string): string {
  return WORDS[kind] ?? kind;
}
