import type { components } from "./schema";

type Schemas = components["schemas"];

export type Assembly = Schemas["Assembly"];
export type AuditEntry = Schemas["AuditEntry"];
export type Best = Schemas["Best"];
export type Certificate = Schemas["Certificate"];
export type Check = Schemas["Check"];
export type ComparedEngine = Schemas["ComparedEngine"];
export type DecisionColumn = Schemas["DecisionColumn"];
export type DecisionRow = Schemas["DecisionRow"];
export type Decisions = Schemas["Decisions"];
export type DeviceClass = Schemas["DeviceClass"];
export type DeviceState = Schemas["DeviceState"];
export type Drain = Schemas["Drain"];
export type Drift = Schemas["Drift"];
export type GateFunction = Schemas["GateFunction"];
export type GateState = Schemas["GateState"];
export type Recheck = Schemas["Recheck"];
export type RecheckFinished = Schemas["RecheckFinished"];
export type RecheckResult = Schemas["RecheckResult"];
export type GuestLink = Schemas["GuestLink"];
export type HistoryPoint = Schemas["HistoryPoint"];
export type Job = Schemas["Job"];
export type JobChanged = Schemas["JobChanged"];
export type JobState = Job["state"];
export type LeaderboardRow = Schemas["LeaderboardRow"];
export type LeaderboardFilters = Schemas["LeaderboardFilters"];
export type Lease = Schemas["Lease"];
export type NewToken = Schemas["NewToken"];
export type NewUser = Schemas["NewUser"];
export type Overview = Schemas["Overview"];
export type PredictionPair = Schemas["PredictionPair"];
export type PredictionRound = Schemas["PredictionRound"];
export type Predictions = Schemas["Predictions"];
export type Preview = Schemas["Preview"];
export type PreviewTask = Schemas["PreviewTask"];
export type RecordDetail = Schemas["RecordDetail"];
export type RecordRow = Schemas["Record"];
export type RejectedContender = Schemas["RejectedContender"];
export type Resubmit = Schemas["Resubmit"];
export type Right = Schemas["Me"]["rights"][number];
export type Roofline = Schemas["Roofline"];
export type SandboxLevel = NonNullable<Worker["sandbox"]>;
export type Scope = Schemas["Me"]["scope"];
export type StoredComparison = Schemas["StoredComparison"];
export type Span = Schemas["Span"];
export type SubmitJob = Schemas["SubmitJob"];
export type TargetOffer = Schemas["TargetOffer"];
export type Task = Schemas["Task"];
export type TaskChanged = Schemas["TaskChanged"];
export type TaskState = Task["state"];
export type Tensor = Schemas["Tensor"];
export type Trial = Schemas["Trial"];
export type TrialFinished = Schemas["TrialFinished"];
export type TrialState = Trial["state"];
export type Token = Schemas["Token"];
export type Use = Schemas["Use"];
export type User = Schemas["User"];
export type Worker = Schemas["Worker"];
export type WorkloadDetail = Schemas["WorkloadDetail"];

/** The states that a job or a task never leaves. */
export function isFinished(state: JobState | TaskState): boolean {
  return state === "succeeded" || state === "partly" || state === "failed" || state === "cancelled";
}
