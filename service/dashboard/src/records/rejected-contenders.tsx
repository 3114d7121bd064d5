import { Stack, Title } from "@mantine/core";
import { useId } from "react";
import { Link } from "react-router";
import type { RejectedContender } from "../api/types";
import { FailureNote } from "../components/failure-note";
import { formatFailureKind } from "../format/failure";

/** The rejected contenders of the closing race, with the reasons. */
export function RejectedContenders({ contenders }: { contenders: RejectedContender[] }) {
  const id = useId();
  if (contenders.length === 0) return null;
  return (
    <Stack component="section" aria-labelledby={id} gap="sm" mt="lg">
      <Title order={3} size="h5" id={id}>
        Rejected contenders: {contenders.length}
      </Title>
      {contenders.map((contender) => (
        <FailureNote
          key={contender.candidate}
          label={formatFailureKind(contender.kind)}
          message={contender.message}
        >
          <Name contender={contender} />, {contender.kind} at {contender.stage}
        </FailureNote>
      ))}
    </Stack>
  );
}

function Name({ contender: { candidate, record_id } }: { contender: RejectedContender }) {
  const name = <code>{candidate.slice(0, 12)}</code>;
  return record_id === null ? (
    name
  ) : (
    <Link to={`/records/${record_id}`} className="link" title="The schedule that was rejected">
      {name}
    </Link>
  );
}
