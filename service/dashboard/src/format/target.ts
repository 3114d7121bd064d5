type Target = Record<string, unknown>;

/** A TVM target in a few words: its kind and what tells it from others of its kind. */
export function formatTarget(target: Target): string {
  const kind = typeof target.kind === "string" ? target.kind : "unknown";
  const model = [target.tag, target.model, target.mcpu, target.arch].find(
    (value) => typeof value === "string" && value !== "" && value !== "unknown",
  );
  return model === undefined ? kind : `${kind} · ${model}`;
}
