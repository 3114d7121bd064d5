/** A list of words with commas between. */
export function parseWords(text: string): string[] {
  return text.split(",").flatMap((word) => word.trim() || []);
}

/** Reads `n=128, m=64`, or several values of an extent as `n=1, 64`; null if it is not of that form. */
export function parseExtents(text: string): Record<string, number[]> | null {
  const extents: Record<string, number[]> = {};
  let values: number[] | undefined;
  for (const part of parseWords(text)) {
    const match = /^(?:([A-Za-z_]\w*)\s*=\s*)?(\d+)$/.exec(part);
    if (!match) return null;
    if (match[1] !== undefined) {
      values = [];
      extents[match[1]] = values;
    }
    if (values === undefined) return null;
    values.push(Number(match[2]));
  }
  return extents;
}

/** Every combination of the extents' values; none if there are no extents. */
export function combinations(extents: Record<string, number[]>): Record<string, number>[] {
  const names = Object.keys(extents);
  if (names.length === 0) return [];
  return names.reduce<Record<string, number>[]>(
    (found, name) =>
      found.flatMap((each) => (extents[name] ?? []).map((value) => ({ ...each, [name]: value }))),
    [{}],
  );
}

const LABEL = /^[A-Za-z0-9][\w.-]*$/;

/** Reads `rack=a, gpu=h200`; null if it is not of that form. */
export function parseLabels(text: string): Record<string, string> | null {
  const labels: Record<string, string> = {};
  for (const part of parseWords(text)) {
    const [key = "", value = "", ...rest] = part.split("=").map((each) => each.trim());
    if (!LABEL.test(key) || !LABEL.test(value) || rest.length > 0 || key in labels) return null;
    labels[key] = value;
  }
  return labels;
}

/**
 * The targets in lines of text: JSON if a line begins with a brace, or else a target string or tag; null if a line is
 * no JSON.
 */
export function parseTargets(text: string): (string | Record<string, unknown>)[] | null {
  try {
    return text
      .split("\n")
      .flatMap((line) => line.trim() || [])
      .map((line) => (line.startsWith("{") ? (JSON.parse(line) as Record<string, unknown>) : line));
  } catch {
    return null;
  }
}

/** The traces of a design space in a JSON file; null if the text is no JSON, or no list. */
export function parseSpace(text: string): unknown[] | null {
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? found : null;
  } catch {
    return null;
  }
}
