import { Button, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import type { RecordDetail, RecordRow } from "../api/types";
import { Ready } from "../components/ready";
import { Unfolding } from "../components/unfolding";
import { formatLatency, formatSpeedup } from "../format/units";
import classes from "./compare-button.module.css";
import { siblingsQuery } from "./queries";
import { relativeSpeed } from "./race";

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
              The fastest trials of this workload, each as it was first measured. This schedule took{" "}
              {formatLatency(record.median_us)} then.
            </Text>
            <ul className={classes.list}>
              {others.map((other) => (
                <li key={other.id}>
                  <Link to={`/compare?a=${record.id}&b=${other.id}`} className={classes.choice}>
                    <Speeds record={record} other={other} />
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

/** The latency of another record, and its speed as a share of this one's: of the race, if both ran in it. */
function Speeds({ record, other }: { record: RecordDetail; other: RecordRow }) {
  const { value, interval, us, raced } = relativeSpeed(other, record);
  return (
    <>
      <span className="numeric">{formatLatency(us[0])}</span>
      <span className="muted numeric">
        {formatSpeedup(value, interval)} as fast{raced && ", raced"}
      </span>
    </>
  );
}

function noteOf({ is_baseline, certified }: { is_baseline: boolean; certified: boolean }): string {
  if (is_baseline) return "baseline";
  return certified ? "certified" : "";
}
