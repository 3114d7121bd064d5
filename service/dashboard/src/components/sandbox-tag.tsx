import type { SandboxLevel } from "../api/types";
import { Tag } from "./tag";

const HINTS: Record<SandboxLevel, string> = {
  namespaces:
    "Programs run in Linux namespaces: with a private file system and process table, and without a network.",
  landlock: "Programs can open only the files that they need, and no sockets.",
  none: "Programs run without a sandbox: code that users submit can do whatever the service can do.",
};

interface SandboxTagProps {
  /** Null or undefined for imported records. */
  level: SandboxLevel | null | undefined;
}

/** The sandbox of the process that runs submitted code. */
export function SandboxTag({ level }: SandboxTagProps) {
  if (level === null || level === undefined) return <span className="muted">–</span>;
  return (
    <Tag tone={level === "none" ? "warn" : "neutral"} hint={HINTS[level]}>
      {level}
    </Tag>
  );
}
