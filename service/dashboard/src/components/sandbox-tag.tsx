import type { SandboxLevel } from "../api/types";
import { Tag } from "./tag";

const HINTS: Record<SandboxLevel, string> = {
  namespaces: "Programs run with a file system and processes of their own, and without a network.",
  landlock: "Programs can open no files but those that they need, and no sockets.",
  none: "Programs run without walls: what users send can do whatever the service can.",
};

interface SandboxTagProps {
  /** Null or undefined where nobody knows it: an import, or stored by an earlier version. */
  level: SandboxLevel | null | undefined;
}

/** The walls around the process that runs what users send. */
export function SandboxTag({ level }: SandboxTagProps) {
  if (level === null || level === undefined) return <span className="muted">–</span>;
  return (
    <Tag tone={level === "none" ? "warn" : "neutral"} hint={HINTS[level]}>
      {level}
    </Tag>
  );
}
