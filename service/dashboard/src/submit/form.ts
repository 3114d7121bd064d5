import type { SubmitJob } from "../api/types";
import { combinations, parseExtents, parseLabels, parseTargets, parseWords } from "./words";

type Target = SubmitJob["target"];

/** A list of traces, from a file. */
export interface DesignSpace {
  fileName: string;
  traces: unknown[];
}

export interface SubmitForm {
  name: string;
  code: string;
  format: SubmitJob["module"]["format"];
  /** Those chosen of the fleet's, each as JSON; or only `auto`. */
  targets: string[];
  /** Target strings, tags or JSON, one a line. */
  otherTargets: string;
  trials: string | number;
  minutes: string | number;
  /** Seconds of measuring slots. */
  deviceSeconds: string | number;
  /** Microseconds for one run of the model that are few enough. */
  latency: string | number;
  /** Whether the search stops when more of it is not expected to gain much. */
  untilPlateau: boolean;
  seed: string | number;
  priority: string | number;
  /** Values of symbolic extents, as `n=128, m=64`. */
  shapes: string;
  /** Null for the built-in design space. */
  space: DesignSpace | null;
  force: boolean;
  exactMath: boolean;
  /** Whether products and convolutions of float32 may round their factors to TF32. */
  tf32: boolean;
  private: boolean;
  /** Labels of workers, as `rack=a, gpu=h200`. */
  labels: string;
  /** Words with commas between. */
  tags: string;
  description: string;
}

export const AUTO = "auto";

export const EMPTY_FORM: SubmitForm = {
  name: "",
  code: "",
  format: "tvmscript",
  targets: [AUTO],
  otherTargets: "",
  trials: 64,
  minutes: "",
  deviceSeconds: "",
  latency: "",
  untilPlateau: false,
  seed: 0,
  priority: 0,
  shapes: "",
  space: null,
  force: false,
  exactMath: false,
  tf32: false,
  private: false,
  labels: "",
  tags: "",
  description: "",
};

export type Problems = Partial<Record<keyof SubmitForm, string>>;

/** Fields that a preview does not depend on. */
const BESIDE_PREVIEW: ReadonlySet<string> = new Set([
  "name",
  "seed",
  "priority",
  "minutes",
  "deviceSeconds",
  "latency",
  "private",
  "tags",
  "description",
]);

/** Whether a preview still fits after these changes. */
export function keepsPreview(changes: Partial<SubmitForm>): boolean {
  return Object.keys(changes).every((field) => BESIDE_PREVIEW.has(field));
}

/** TVM's JSON is an object or a list; TVMScript, which is Python, never begins like one. */
export function guessFormat(code: string): SubmitForm["format"] {
  return /^\s*[{[]/.test(code) ? "tvm-json" : "tvmscript";
}

/** The targets after a choice: `auto` stands alone, and for none. */
export function chosenTargets(values: string[]): string[] {
  const chosen = values.at(-1) === AUTO ? [] : values.filter((value) => value !== AUTO);
  return chosen.length === 0 ? [AUTO] : chosen;
}

/** The targets that the form names; other targets take the place of `auto`. */
export function targetsOf(form: SubmitForm): Target[] {
  const others = parseTargets(form.otherTargets) ?? [];
  const chosen = form.targets.filter((target) => target !== AUTO || others.length === 0);
  return [
    ...chosen.map((target) => (target === AUTO ? AUTO : (JSON.parse(target) as Record<string, unknown>))),
    ...others,
  ];
}

/** Errors of the form, by field. The service checks the rest. */
export function problemsOf(form: SubmitForm): Problems {
  const problems: Problems = {};
  if (form.code.trim() === "") problems.code = "Paste a module, or drop a file.";
  if (!(Number(form.trials) >= 1)) problems.trials = "Enter at least 1 trial.";
  if (!isLimit(form.minutes))
    problems.minutes = "Enter more than 0 minutes, or leave the field empty for no limit.";
  if (!isLimit(form.deviceSeconds))
    problems.deviceSeconds = "Enter more than 0 seconds, or leave the field empty for no limit.";
  if (!isLimit(form.latency))
    problems.latency = "Enter more than 0 µs, or leave the field empty for no target.";
  if (parseExtents(form.shapes) === null)
    problems.shapes = "Write each extent as name=value, such as n=128, m=64; several values as n=1, 64.";
  if (parseLabels(form.labels) === null)
    problems.labels = "Write each label once as key=value, such as rack=a, gpu=h200.";
  if (parseTargets(form.otherTargets) === null)
    problems.otherTargets = "A line that begins with { must be the JSON of a target.";
  return problems;
}

function isLimit(value: string | number): boolean {
  return value === "" || Number(value) > 0;
}

/** The body of `POST /jobs` for a form without problems; with several targets, one job is created for each. */
export function bodyOf(form: SubmitForm): SubmitJob {
  const [target = AUTO, ...more] = targetsOf(form);
  const body = { ...previewOf(form), target: more.length === 0 ? target : AUTO };
  return more.length === 0 ? body : { ...body, targets: [target, ...more] };
}

/** The body of `POST /jobs/preview`, which is for the first target. */
export function previewOf(form: SubmitForm): SubmitJob {
  const shapes = combinations(parseExtents(form.shapes) ?? {});
  return {
    module: { format: form.format, data: form.code },
    target: targetsOf(form)[0] ?? AUTO,
    name: form.name.trim() || null,
    seed: Number(form.seed),
    priority: Number(form.priority),
    budget: {
      max_trials: Number(form.trials),
      max_seconds: form.minutes === "" ? null : Number(form.minutes) * 60,
      max_device_seconds: form.deviceSeconds === "" ? null : Number(form.deviceSeconds),
      target_latency_us: form.latency === "" ? null : Number(form.latency),
      until: form.untilPlateau ? "plateau" : null,
    },
    space: form.space?.traces ?? null,
    shapes: shapes.length > 1 ? shapes : (shapes[0] ?? null),
    force: form.force,
    exact_math: form.exactMath,
    math: form.tf32 ? "tf32" : "fp32",
    visibility: form.private ? "private" : "team",
    labels: parseLabels(form.labels) ?? {},
    tags: parseWords(form.tags),
    description: form.description,
  };
}
