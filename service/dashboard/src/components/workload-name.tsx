import { Text } from "@mantine/core";
import { Fragment } from "react";
import { Link } from "react-router";

interface WorkloadNameProps {
  name: string;
  hash: string;
  /** Where its name leads. */
  to: string;
}

/** A workload by its name, with the beginning of the digest that it is known by. */
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

/** A name that breaks at its underscores rather than within a word. */
function Breakable({ name }: { name: string }) {
  return name.split(/(?<=_)/).map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of a name stay where they are
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ));
}
