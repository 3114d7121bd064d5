type Target = Record<string, unknown>;

/** A TVM target in a few words: its kind and what tells it from others of its kind. */
export function formatTarget(target: Target): string {
  const kind = typeof target.kind === "string" ? target.kind : "unknown";
  const model = [target.tag, target.model, target.mcpu, target.arch].find(
    (value) => typeof value === "string" && value !== "" && value !== "unknown",
  );
  return model === undefined ? kind : `${kind} · ${model}`;
}

/** Names that tell targets apart: a few words for each, or the JSON of all where two would read the same. */
export function formatTargets(targets: Target[]): string[] {
  const names = targets.map(formatTarget);
  return new Set(names).size === names.length ? names : targets.map((each) => JSON.stringify(each));
}
