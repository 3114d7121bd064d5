import type { JobState, RecheckResult, TaskState } from "../api/types";
import { CheckIcon } from "./icons";
import { Tag, type Tone } from "./tag";

const STATE_TONE: Record<JobState | TaskState, Tone> = {
  queued: "neutral",
  running: "active",
  joined: "active",
  succeeded: "good",
  partly: "warn",
  failed: "bad",
  cancelled: "warn",
};

export function StateTag({ state }: { state: JobState | TaskState }) {
  return <Tag tone={STATE_TONE[state]}>{state}</Tag>;
}

/** `pending`: the schedule may still become certified. */
export function CertifiedTag({ certified, pending = false }: { certified: boolean; pending?: boolean }) {
  if (pending && !certified) return "–";
  return certified ? (
    <Tag tone="good" icon={<CheckIcon />}>
      certified
    </Tag>
  ) : (
    <Tag tone="neutral">not certified</Tag>
  );
}

const VERDICT_TONE: Record<RecheckResult["verdict"], Tone> = {
  holds: "good",
  regression: "bad",
  failed: "bad",
  unclear: "warn",
};

/** What a later race says of a certificate. */
export function VerdictTag({ verdict }: { verdict: RecheckResult["verdict"] }) {
  return <Tag tone={VERDICT_TONE[verdict]}>{verdict}</Tag>;
}

export function RegressedTag() {
  return (
    <Tag
      tone="bad"
      hint="In a later race, this schedule was slower than its certificate says, or computed a wrong result. No other certified schedule of the function holds. Submit the function again to search for one."
    >
      no longer holds
    </Tag>
  );
}

export function PrivateTag() {
  return (
    <Tag tone="neutral" hint="Only its owner and admins see this job.">
      private
    </Tag>
  );
}
