import { Button, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { RecordDetail } from "../api/types";
import { Ready } from "../components/ready";
import { Unfolding } from "../components/unfolding";
import { formatLatency, formatSpeedup } from "../format/units";
import classes from "./compare-button.module.css";
import { siblingsQuery } from "./queries";

/** Opens a comparison with another record of the same workload and device class. */
export function CompareButton({ record }: { record: RecordDetail }) {
  return (
    <Unfolding
      label="Compare with another record"
      width={320}
      button={(toggle) => (
        <Button variant="default" onClick={toggle}>
          Compare with …
        </Button>
      )}
    >
      {() => <Siblings record={record} />}
    </Unfolding>
  );
}

function Siblings({ record }: { record: RecordDetail }) {
  const query = useQuery(siblingsQuery(record.workload_hash, record.device_class));
  return (
    <Ready query={query}>
      {(records) => {
        const others = records.filter((other) => other.id !== record.id);
        if (others.length === 0) {
          return <Text size="sm">No other trial of this workload was measured on this device class.</Text>;
        }
        return (
          <Stack gap="xs">
            <Text size="sm" c="var(--muted)">
              The fastest trials of this workload
            </Text>
            <ul className={classes.list}>
              {others.map((other) => (
                <li key={other.id}>
                  <Link to={`/compare?a=${record.id}&b=${other.id}`} className={classes.choice}>
                    <span className="numeric">{formatLatency(other.median_us)}</span>
                    <span className="muted numeric">
                      {formatSpeedup(record.median_us / other.median_us)} as fast
                    </span>
                    <code>{other.id.slice(0, 8)}</code>
                    <span className="muted">{noteOf(other)}</span>
                  </Link>
                </li>
              ))}
            </ul>
          </Stack>
        );
      }}
    </Ready>
  );
}

function noteOf({ is_baseline, certified }: { is_baseline: boolean; certified: boolean }): string {
  if (is_baseline) return "baseline";
  return certified ? "certified" : "";
}
