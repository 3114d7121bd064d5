import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { meQuery, useMay } from "../auth/queries";
import { Notice } from "../components/notice";
import { PageHead } from "../components/page-head";
import { Ready } from "../components/ready";
import { AuditPanel } from "./audit-panel";
import { ownUseQuery } from "./queries";
import { TokenPanel } from "./token-panel";
import { UsePanel } from "./use-panel";
import { UserPanel } from "./user-panel";

/** Shows the user's tokens and limits, and to admins also users and the audit log. */
export default function AccessPage() {
  const { data: me } = useQuery(meQuery);
  const maySubmit = useMay("submit");
  const isAdmin = useMay("administer");
  return (
    <Stack gap="md">
      <PageHead title="Access">{me ? `You are signed in as ${me.user}.` : ""}</PageHead>
      {me && !maySubmit && (
        <Notice tone="warn" title="Read-only access">
          You are signed in with read-only access, so there is nothing to change here.
        </Notice>
      )}
      {maySubmit && (
        <>
          <TokenPanel />
          <Limits />
        </>
      )}
      {isAdmin && (
        <>
          <UserPanel />
          <AuditPanel />
        </>
      )}
    </Stack>
  );
}

function Limits() {
  const query = useQuery(ownUseQuery);
  return <Ready query={query}>{(use) => <UsePanel use={use} />}</Ready>;
}
