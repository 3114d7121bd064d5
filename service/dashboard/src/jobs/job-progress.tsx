import { Progress } from "@mantine/core";
import type { Job } from "../api/types";
import { formatGuess } from "../format/time";
import { formatCount } from "../format/units";

interface JobProgressProps {
  progress: Job["progress"];
  active: boolean;
  compact?: boolean;
}

/** Trials done of those allowed, failed ones in another colour and in words. */
export function JobProgress({ progress, active, compact = false }: JobProgressProps) {
  const { trials, failed, total } = progress;
  if (!active && trials === 0) return <span className="muted">no trial was made</span>;
  const share = (count: number) => (total === 0 ? 0 : (100 * count) / total);
  const done = `${formatCount(trials)} of ${formatCount(total)} trials`;
  const failures = failed === 0 ? "none failed" : `${formatCount(failed)} failed`;
  return (
    <div style={{ minWidth: compact ? "9rem" : undefined }}>
      <Progress.Root size={compact ? "sm" : "lg"} bg="var(--neutral-fill)">
        <Progress.Section
          value={share(trials - failed)}
          color="loop"
          striped={active && !compact}
          animated={active && !compact}
          aria-label={`${done} done, ${failures}`}
        />
        <Progress.Section value={share(failed)} color="#d55e00" aria-label={failures} />
      </Progress.Root>
      <div className="numeric" style={{ fontSize: "0.8125rem", marginTop: compact ? 2 : 6 }}>
        {compact ? `${formatCount(trials)} of ${formatCount(total)}` : done}
        {failed > 0 && <span className="muted"> · {failures}</span>}
        {active && progress.time_left_s !== null && (
          <span className="muted">{` · about ${formatGuess(progress.time_left_s)} left`}</span>
        )}
      </div>
    </div>
  );
}
