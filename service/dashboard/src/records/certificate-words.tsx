import { Stack, Text } from "@mantine/core";
import type { Certificate } from "../api/types";
import { Notice } from "../components/notice";
import { RelativeTime } from "../components/relative-time";
import { SandboxTag } from "../components/sandbox-tag";
import { formatDeviceState } from "../format/device-state";
import { formatLatency, formatSmall, formatSpeedup, plural } from "../format/units";
import { libraryWords } from "./library-words";

/** What the certificate proves, as one would say it. */
export function CertificateWords({ certificate: c }: { certificate: Certificate }) {
  return (
    <Stack gap="xs" maw="60rem">
      {c.regressed_at && (
        <Notice tone="bad" title="It does not hold any more">
          Raced anew, it was slower than this certificate says, or wrong, since{" "}
          <RelativeTime time={c.regressed_at} />. It answers no job: submit the function again to search for a
          better one.
        </Notice>
      )}
      <Text size="sm">
        <strong>It computes the same.</strong> Inputs: {c.inputs}. The outputs agree with those of the
        unscheduled program within a relative tolerance of {formatSmall(c.rtol)} and an absolute one of{" "}
        {formatSmall(c.atol)}; the largest error seen was {formatSmall(c.max_rel_error)} relative,{" "}
        {formatSmall(c.max_abs_error)} absolute.
      </Text>
      <Text size="sm">
        <strong>It is as fast as it says.</strong> In a closing race of{" "}
        {plural(c.rounds, "interleaved round")} among {plural(c.contenders, "contender")}, of which the
        fastest went through them all, the baseline took {formatLatency(c.baseline_us)} and this schedule{" "}
        {formatLatency(c.best_us)} (medians): {formatSpeedup(c.speedup)}.
        {c.library && <> {libraryWords(c.library, c.best_us)}</>}
      </Text>
      <Text size="sm" c="var(--muted)">
        Certified <RelativeTime time={c.created_at} />.
        {c.checked_at && (
          <>
            {" "}
            Raced anew <RelativeTime time={c.checked_at} />.
          </>
        )}
        {c.conditions && <> Under {c.conditions}.</>}
        {c.device_state && <> The GPU after the race: {formatDeviceState(c.device_state)}.</>}
        {c.sandbox && (
          <>
            {" "}
            Sandbox of the race: <SandboxTag level={c.sandbox} />
          </>
        )}
      </Text>
    </Stack>
  );
}
