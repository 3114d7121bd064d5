import type { SubmitJob } from "../api/types";

export interface SubmitForm {
  name: string;
  code: string;
  format: SubmitJob["module"]["format"];
  /** `auto`, or a target as JSON. */
  target: string;
  trials: string | number;
  minutes: string | number;
  /** Whether the search stops when more of it is not expected to gain much. */
  untilPlateau: boolean;
  seed: string | number;
  priority: string | number;
  /** Values of symbolic extents, as `n=128, m=64`. */
  shapes: string;
  force: boolean;
  exactMath: boolean;
  /** Whether products and convolutions of float32 may round their factors to TF32. */
  tf32: boolean;
  private: boolean;
  /** Words with commas between. */
  tags: string;
}

export const EMPTY_FORM: SubmitForm = {
  name: "",
  code: "",
  format: "tvmscript",
  target: "auto",
  trials: 64,
  minutes: "",
  untilPlateau: false,
  seed: 0,
  priority: 0,
  shapes: "",
  force: false,
  exactMath: false,
  tf32: false,
  private: false,
  tags: "",
};

/** Fields that a preview does not depend on. */
const BESIDE_PREVIEW: ReadonlySet<string> = new Set([
  "name",
  "seed",
  "priority",
  "minutes",
  "private",
  "tags",
]);

/** Whether a preview still fits after these changes. */
export function keepsPreview(changes: Partial<SubmitForm>): boolean {
  return Object.keys(changes).every((field) => BESIDE_PREVIEW.has(field));
}

/** TVM's JSON is an object or a list; TVMScript, which is Python, never begins like one. */
export function guessFormat(code: string): SubmitForm["format"] {
  return /^\s*[{[]/.test(code) ? "tvm-json" : "tvmscript";
}

/** Reads `n=128, m=64`; null where it is not of that form. */
export function parseShapes(text: string): Record<string, number> | null {
  const shapes: Record<string, number> = {};
  for (const part of text.split(",").map((each) => each.trim())) {
    if (part === "") continue;
    const match = /^([A-Za-z_]\w*)\s*=\s*(\d+)$/.exec(part);
    if (!match) return null;
    shapes[match[1] as string] = Number(match[2]);
  }
  return shapes;
}

/** Errors of the form, by field. The service checks the rest. */
export function problemsOf(form: SubmitForm): Partial<Record<keyof SubmitForm, string>> {
  const problems: Partial<Record<keyof SubmitForm, string>> = {};
  if (form.code.trim() === "") problems.code = "Paste a module, or drop a file.";
  if (!(Number(form.trials) >= 1)) problems.trials = "Enter at least 1 trial.";
  if (form.minutes !== "" && !(Number(form.minutes) > 0))
    problems.minutes = "Enter more than 0 minutes, or leave the field empty for no limit.";
  if (parseShapes(form.shapes) === null)
    problems.shapes = "Write each extent as name=value, such as n=128, m=64.";
  return problems;
}

/** The body of `POST /jobs` for a form without problems. */
export function bodyOf(form: SubmitForm): SubmitJob {
  const shapes = parseShapes(form.shapes) ?? {};
  return {
    module: { format: form.format, data: form.code },
    target: form.target === "auto" ? "auto" : (JSON.parse(form.target) as Record<string, unknown>),
    name: form.name.trim() || null,
    seed: Number(form.seed),
    priority: Number(form.priority),
    budget: {
      max_trials: Number(form.trials),
      max_seconds: form.minutes === "" ? null : Number(form.minutes) * 60,
      until: form.untilPlateau ? "plateau" : null,
    },
    shapes: Object.keys(shapes).length === 0 ? null : shapes,
    force: form.force,
    exact_math: form.exactMath,
    math: form.tf32 ? "tf32" : "fp32",
    visibility: form.private ? "private" : "team",
    description: "",
    tags: form.tags.split(",").flatMap((tag) => tag.trim() || []),
  };
}
