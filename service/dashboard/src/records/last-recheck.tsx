import { Stack, Text } from "@mantine/core";
import type { Certificate } from "../api/types";
import { RelativeTime } from "../components/relative-time";
import { VerdictTag } from "../components/tags";
import { formatInterval } from "../format/units";
import { Signature } from "../signatures/signature";
import { signedResult } from "../signatures/verdict";

interface LastRecheckProps {
  time: string;
  verdict: Certificate["verdict"];
}

/** Says what the last race of a certified schedule found, and who has signed that. */
export function LastRecheck({ time, verdict }: LastRecheckProps) {
  const result = verdict ? signedResult(verdict) : null;
  return (
    <Stack gap="xs">
      <Text size="sm" c="var(--muted)">
        Raced again <RelativeTime time={time} />
        {result && (
          <>
            : <VerdictTag verdict={result.verdict} />
          </>
        )}
        {result?.slowdown && <> with a slowdown of {formatInterval(result.slowdown)}</>}.
      </Text>
      {verdict && <Signature what="The verdict" keyId={verdict.key_id} />}
    </Stack>
  );
}
