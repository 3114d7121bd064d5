import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Notice } from "../components/notice";
import { keyComplaint } from "./key-words";
import { keysQuery } from "./queries";

interface SignatureProps {
  /** What is signed, at the beginning of a sentence. */
  what: string;
  keyId: string;
}

/** Says with which key something is signed, and interrupts where the service has revoked the key or does not know it. */
export function Signature({ what, keyId }: SignatureProps) {
  const { data: keys } = useQuery(keysQuery);
  const complaint = keys ? keyComplaint(keyId, keys) : null;
  const words = (
    <>
      {what} is signed with the key <code>{keyId}</code>
    </>
  );
  return complaint === null ? (
    <Text size="sm" c="var(--muted)">
      {words}. <code>loopwright</code> verifies the signature before it compiles the schedule.
    </Text>
  ) : (
    <Notice tone="bad" title="The signature does not hold">
      {words}, {complaint}. <code>loopwright</code> refuses the schedule. Submit the function again to certify
      a schedule with the present key.
    </Notice>
  );
}

/** The id of the key of a signature, in a table. */
export function KeyId({ id }: { id: string }) {
  const { data: keys } = useQuery(keysQuery);
  const complaint = keys ? keyComplaint(id, keys) : null;
  return (
    <>
      <code>{id}</code>
      {complaint !== null && (
        <Text fz="xs" c="var(--bad-text)">
          {complaint}
        </Text>
      )}
    </>
  );
}
