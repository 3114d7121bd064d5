type Target = Record<string, unknown>;

/** Formats a TVM target: its kind, and its model or architecture. */
export function formatTarget(target: Target): string {
  const kind = typeof target.kind === "string" ? target.kind : "unknown";
  const model = [target.tag, target.model, target.mcpu, target.arch].find(
    (value) => typeof value === "string" && value !== "" && value !== "unknown",
  );
  return model === undefined ? kind : `${kind} · ${model}`;
}

/** Formats targets distinguishably: short names, or JSON for all if two short names are equal. */
export function formatTargets(targets: Target[]): string[] {
  const names = targets.map(formatTarget);
  return new Set(names).size === names.length ? names : targets.map((each) => JSON.stringify(each));
}

/** The name of the machine on which a record was measured; empty from services before they gave it one. */
export function machineOf(record: { device: Record<string, unknown> }): string {
  return typeof record.device.name === "string" ? record.device.name : "";
}
