import { Text } from "@mantine/core";
import { Link } from "react-router";
import { functionName } from "../format/function-name";
import { Breakable } from "./breakable";

interface WorkloadNameProps {
  name: string;
  hash: string;
  /** Where the model calls it, if it is known: the name that people give it. */
  source?: string | null | undefined;
  /** Address of the name's link; without one, the name is text. */
  to?: string | undefined;
}

/** A workload's source, if it is known, the beginning of its digest, and its name. */
export function WorkloadName({ name, hash, source, to }: WorkloadNameProps) {
  const title = functionName({ source, name });
  return (
    <>
      {to === undefined ? (
        <Breakable name={title} />
      ) : (
        <Link to={to} className="link" title={title} aria-label={title} style={{ overflowWrap: "anywhere" }}>
          <Breakable name={title} />
        </Link>
      )}
      <Text fz="xs" c="var(--muted)" style={{ overflowWrap: "anywhere" }}>
        <code title={hash}>{hash.slice(0, 12)}</code>
        {title === source && (
          <>
            {" "}
            <Breakable name={name} />
          </>
        )}
      </Text>
    </>
  );
}

export function workloadPath(hash: string, deviceClass?: string): string {
  return `/workloads/${hash}${deviceClass ? `?device_class=${encodeURIComponent(deviceClass)}` : ""}`;
}
