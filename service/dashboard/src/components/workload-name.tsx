import { Text } from "@mantine/core";
import { Link } from "react-router";
import { Breakable } from "./breakable";

interface WorkloadNameProps {
  name: string;
  hash: string;
  /** Address of the name's link. */
  to: string;
}

/** A workload's name, with the beginning of its digest. */
export function WorkloadName({ name, hash, to }: WorkloadNameProps) {
  return (
    <>
      <Link to={to} className="link" title={name} aria-label={name} style={{ overflowWrap: "anywhere" }}>
        <Breakable name={name} />
      </Link>
      <Text ff="monospace" fz="xs" c="var(--muted)" title={hash}>
        {hash.slice(0, 12)}
      </Text>
    </>
  );
}

export function workloadPath(hash: string, deviceClass?: string): string {
  return `/workloads/${hash}${deviceClass ? `?device_class=${encodeURIComponent(deviceClass)}` : ""}`;
}
