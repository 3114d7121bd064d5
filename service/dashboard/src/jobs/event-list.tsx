import { Switch } from "@mantine/core";
import type { Job } from "../api/types";
import { Empty } from "../components/empty";
import { RelativeTime } from "../components/relative-time";
import { useFlag } from "../components/use-query-state";
import { plural } from "../format/units";
import classes from "./event-list.module.css";
import { eventInWords } from "./event-words";
import type { JobEvent } from "./job-event";

const MOST = 500;

/** Events, the newest first. */
export function EventList({ job, events }: { job: Job; events: JobEvent[] }) {
  const [withTrials, setWithTrials] = useFlag("trials");
  const wanted = events.filter(({ type }) => withTrials || type !== "trial").reverse();
  const left = wanted.length - MOST;
  return (
    <div style={{ padding: "0 1rem 1rem" }}>
      <Switch
        label="Show every trial"
        checked={withTrials}
        onChange={(event) => setWithTrials(event.currentTarget.checked)}
      />
      {wanted.length === 0 ? (
        <Empty>Nothing has happened yet.</Empty>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        <ol className={classes.events} tabIndex={0} aria-label="Events, the newest first">
          {wanted.slice(0, MOST).map((event) => (
            <li key={event.id} className={classes.event}>
              <span className={classes.time}>
                <RelativeTime time={event.data.at} />
              </span>
              <span>{eventInWords(event, job)}</span>
            </li>
          ))}
        </ol>
      )}
      {left > 0 && <span className="muted">and {plural(left, "earlier event")}</span>}
    </div>
  );
}
