import { Text } from "@mantine/core";
import type { ImportedCertificate } from "../api/types";
import { Notice } from "../components/notice";
import { RelativeTime } from "../components/relative-time";
import { importedWorth } from "../signatures/key-words";

/** Says with whose certificate a record was imported, and what that is worth. */
export function ImportedWords({ imported }: { imported: ImportedCertificate }) {
  const { signed, signed_by, imported_at } = imported;
  const words = (
    <>
      Imported <RelativeTime time={imported_at} /> with a certificate that {signed_by} has signed (key{" "}
      <code>{signed.key_id}</code>). {importedWorth(signed_by)} It does not make the record certified: it was
      raced on other machines.
    </>
  );
  return signed_by === "a revoked key" ? (
    <Notice tone="bad" title="The key of the imported certificate is revoked">
      {words}
    </Notice>
  ) : (
    <Text size="sm">{words}</Text>
  );
}
