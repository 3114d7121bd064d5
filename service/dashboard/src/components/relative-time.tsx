import { formatAbsolute, formatRelative } from "../format/time";
import { useNow } from "./use-now";

/** How long ago, with the full date and time on hover. */
export function RelativeTime({ time }: { time: string }) {
  const date = new Date(time);
  return (
    <time dateTime={time} title={formatAbsolute(date)} style={{ whiteSpace: "nowrap" }}>
      {formatRelative(date, useNow())}
    </time>
  );
}
