import { Stack, Text } from "@mantine/core";
import type { Certificate } from "../api/types";
import { Notice } from "../components/notice";
import { RelativeTime } from "../components/relative-time";
import { SandboxTag } from "../components/sandbox-tag";
import { formatDeviceState } from "../format/device-state";
import { formatLatency, formatSmall, formatSpeedup, formatSpeedupInterval, plural } from "../format/units";
import { Signature } from "../signatures/signature";
import { LastRecheck } from "./last-recheck";
import { libraryWords } from "./library-words";

const GRADES: Record<NonNullable<Certificate["grade"]>, string> = {
  clean: "The timings are clean.",
  noisy: "The timings are noisy.",
  inconclusive: "The timings do not show that the schedule is faster than the baseline.",
};

function toleranceWords(c: Certificate): string {
  return `${formatSmall(c.rtol)} of its value plus ${formatSmall(c.atol)} of the largest result`;
}

function largestDifference(c: Certificate): string {
  return c.max_abs_error === 0
    ? "There was no difference."
    : `The largest difference was ${formatSmall(c.max_abs_error)}, which is ${formatSmall(c.max_rel_error)} of the largest result.`;
}

/** The digest by which certificates name the unscheduled program among candidates: that of "baseline". */
const BASELINE = "8ba8496a2525ae171ffd104d632dede6";

function runnerUpWords({ candidate, slowdown }: NonNullable<Certificate["runner_up"]>): string {
  const name = candidate === BASELINE ? "the baseline" : `candidate ${candidate.slice(0, 12)}`;
  const took = `The runner-up, ${name}, took ${formatSpeedup(slowdown.value, slowdown)} of this schedule's time`;
  const interval = `(${formatSpeedupInterval(slowdown)})`;
  return slowdown.low > 1
    ? `${took} ${interval}.`
    : `${took} ${interval}: the race cannot tell the two apart.`;
}

/** Describes a certificate. */
export function CertificateWords({ certificate: c }: { certificate: Certificate }) {
  return (
    <Stack gap="xs" maw="60rem">
      {c.regressed_at && (
        <Notice tone="bad" title="This certificate no longer holds">
          A later race (<RelativeTime time={c.regressed_at} />) found the schedule slower than this
          certificate says, or its result wrong. Jobs no longer use the schedule. Submit the function again to
          search for a better one.
        </Notice>
      )}
      <Text size="sm">
        <strong>Same results.</strong> Inputs: {c.inputs}.{" "}
        {c.rtol === 0 ? "All outputs equal" : "The outputs agree with"} those of the unscheduled program
        {c.rtol !== 0 && <>, each within {toleranceWords(c)}</>}. {largestDifference(c)}
      </Text>
      <Text size="sm">
        <strong>Measured speedup: {formatSpeedup(c.speedup, c.interval)}.</strong>{" "}
        {c.interval && c.grade && (
          <>
            {GRADES[c.grade]} The interval of 95% is {formatSpeedupInterval(c.interval)}.{" "}
          </>
        )}
        The closing race timed {plural(c.contenders, "contender")} in {plural(c.rounds, "interleaved round")}.
        Contenders that are clearly slower leave the race early. The median latency was{" "}
        {formatLatency(c.baseline_us)} for the baseline and {formatLatency(c.best_us)} for this schedule.
        {c.runner_up && <> {runnerUpWords(c.runner_up)}</>}
        {c.library && <> {libraryWords(c.library, c.best_us)}</>}
      </Text>
      <Text size="sm" c="var(--muted)">
        Certified <RelativeTime time={c.created_at} />. Conditions: {c.conditions}.
        {c.device_state && <> The GPU after the race: {formatDeviceState(c.device_state)}.</>} Sandbox of the
        race: <SandboxTag level={c.sandbox} />
      </Text>
      {c.signed && <Signature what="The certificate" keyId={c.signed.key_id} />}
      {c.checked_at && <LastRecheck time={c.checked_at} verdict={c.verdict} />}
    </Stack>
  );
}
