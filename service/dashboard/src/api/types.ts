import type { components } from "./schema";

type Schemas = components["schemas"];

export type Job = Schemas["Job"];
export type JobState = Job["state"];
export type Task = Schemas["Task"];
export type TaskState = Task["state"];
export type Trial = Schemas["Trial"];
export type TrialState = Trial["state"];
export type Best = Schemas["Best"];
export type Certificate = Schemas["Certificate"];
export type RecordDetail = Schemas["RecordDetail"];
export type Worker = Schemas["Worker"];

/** The states that a job or a task never leaves. */
export function isFinished(state: JobState | TaskState): boolean {
  return state === "succeeded" || state === "failed" || state === "cancelled";
}
