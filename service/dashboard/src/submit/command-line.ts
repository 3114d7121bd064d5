import { AUTO, EMPTY_FORM, type SubmitForm, targetsOf } from "./form";
import { combinations, parseExtents, parseLabels, parseWords } from "./words";

/** The command that submits a model's file with the options of a form without problems in them. */
export function commandOf(form: SubmitForm, fileName: string): string {
  const options: [name: string, value?: string | number][] = [];
  for (const target of targetsOf(form))
    if (target !== AUTO)
      options.push(["target", typeof target === "string" ? target : JSON.stringify(target)]);
  if (form.name.trim() !== "") options.push(["name", form.name.trim()]);
  if (form.trials !== EMPTY_FORM.trials) options.push(["max-trials", form.trials]);
  if (form.minutes !== "") options.push(["max-seconds", Number(form.minutes) * 60]);
  if (form.deviceSeconds !== "") options.push(["max-device-seconds", form.deviceSeconds]);
  if (form.latency !== "") options.push(["target-latency", form.latency]);
  if (form.untilPlateau) options.push(["until", "plateau"]);
  if (form.space !== null) options.push(["space", form.space.fileName]);
  const extents = parseExtents(form.shapes) ?? {};
  if (combinations(extents).length > 0)
    for (const [name, values] of Object.entries(extents)) options.push(["shape", `${name}=${values}`]);
  if (form.seed !== EMPTY_FORM.seed) options.push(["seed", form.seed]);
  if (form.priority !== EMPTY_FORM.priority) options.push(["priority", form.priority]);
  if (form.force) options.push(["force"]);
  if (form.exactMath) options.push(["exact-math"]);
  if (form.tf32) options.push(["math", "tf32"]);
  if (form.private) options.push(["private"]);
  for (const [key, value] of Object.entries(parseLabels(form.labels) ?? {}))
    options.push(["label", `${key}=${value}`]);
  for (const tag of parseWords(form.tags)) options.push(["tag", tag]);
  if (form.description !== "") options.push(["description", form.description]);
  options.push(["wait"]);
  const words = options.map(([name, value]) =>
    value === undefined ? `--${name}` : `--${name} ${quoted(`${value}`)}`,
  );
  return ["loopwright job submit", quoted(fileName), ...words].join(" ");
}

/** A word as a shell takes it. */
function quoted(word: string): string {
  return /^[\w.,=:/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
