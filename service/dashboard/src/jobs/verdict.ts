import { isFinished, type Job, type StoredComparison, type Task } from "../api/types";
import { functionName } from "../format/function-name";
import { formatElapsed, formatGuess, formatMilliseconds } from "../format/time";
import { type Ends, formatLatency, formatShare, formatSpeedup, plural } from "../format/units";

/** A ratio that is smaller is shown as 1.00×. */
const ALIKE = 1.005;
/** Share of the time from which a second function is named beside the one that takes most. */
const NOTABLE = 0.1;

/** Whether a job is done, or what it does or waits for now. */
export function stateInWords({ state, activity, progress }: Job): string {
  if (state === "queued") return `${sentence(activity ?? "waiting in the queue")}.`;
  if (state === "running") {
    const left =
      progress.time_left_s === null ? "" : `, about ${formatGuess(progress.time_left_s)} of the search left`;
    return `${sentence(activity ?? "starting")}${left}.`;
  }
  if (state === "succeeded") return "Done: each function has a certified best.";
  return state === "cancelled"
    ? "Cancelled; what was certified until then stays."
    : "Ended; the reason is above.";
}

/** How fast the model is, against the program without schedules and against the fastest other engine or library. */
export function speedInWords(job: Job, comparison?: StoredComparison | null): string[] {
  const [only] = job.tasks;
  const words: string[] = [];
  if (job.tasks.length === 1 && only?.best_us != null && only.speedup !== null) {
    words.push(
      `One call takes ${formatLatency(only.best_us)}: ${faster(only.speedup, "the program without a schedule", only.interval)}.`,
    );
  } else if (job.model) {
    const { latency_us, speedup, measured_us, interval } = job.model;
    const how = measured_us === null ? "by the sum of its functions" : "measured as one program";
    words.push(
      `One run of the model takes ${formatLatency(latency_us)} (${how}): ${faster(speedup, "the program without schedules", interval)}.`,
    );
  }
  const rival = fastestRival(comparison);
  if (rival) {
    const than = `${rival.title}, the fastest of them`;
    words.push(`Beside other engines: ${faster(rival.ratio.value, than, rival.ratio)}.`);
  }
  const slower = job.tasks.filter(libraryIsFaster);
  if (slower.length > 0) {
    const named = slower
      .slice(0, 3)
      .map(
        (task) =>
          `${functionName(task, job.tasks)} (${task.library?.name}, ${formatSpeedup(libraryGain(task))})`,
      )
      .join(", ");
    words.push(
      `A library is faster in ${plural(slower.length, "function")}: ${named}${slower.length > 3 ? ", …" : ""}.`,
    );
  }
  return words;
}

/** The functions that together take most of the time. */
export function restInWords(job: Job): string | null {
  const tasks = job.tasks.filter((task) => task.model_share !== null);
  if (tasks.length < 2 || tasks.length < job.tasks.length) return null;
  const [first, second] = tasks.sort((a, b) => (b.model_share ?? 0) - (a.model_share ?? 0));
  const largest = (second?.model_share ?? 0) < NOTABLE ? [first] : [first, second];
  const named = largest
    .flatMap((task) => (task ? [task] : []))
    .map((task) => `${functionName(task, tasks)} (${formatShare(task.model_share)})`)
    .join(" and ");
  return `Most of the time is in ${named}.`;
}

/** What the job has cost. */
export function costInWords(job: Job): string {
  const parts = [plural(job.progress.trials, "trial")];
  if (job.device_s > 0) parts.push(`${formatMilliseconds(job.device_s * 1_000)} in measuring slots`);
  if (job.started_at !== null && job.finished_at !== null) {
    parts.push(`${formatElapsed(Date.parse(job.finished_at) - Date.parse(job.started_at))} altogether`);
  }
  return `${isFinished(job.state) ? "It took" : "Until now"} ${parts.join(", ")}.`;
}

/** How many times faster than the best schedule a library is: below 1, it is slower. */
export function libraryGain({ library, best_us }: Task): number {
  return library && best_us !== null ? best_us / library.us : 0;
}

export function libraryIsFaster(task: Task): boolean {
  return libraryGain(task) >= ALIKE;
}

type Ratio = NonNullable<StoredComparison["engines"][number]["ratio"]>;

function fastestRival(comparison?: StoredComparison | null): { title: string; ratio: Ratio } | null {
  const rivals = (comparison?.engines ?? []).flatMap(({ title, ratio }) => (ratio ? [{ title, ratio }] : []));
  return rivals.sort((a, b) => a.ratio.value - b.ratio.value)[0] ?? null;
}

/** How much faster or slower something is, with the digits that the interval of the ratio bears. */
function faster(ratio: number, than: string, interval?: Ends | null): string {
  if (Math.max(ratio, 1 / ratio) < ALIKE) return `as fast as ${than}`;
  if (ratio > 1) return `${formatSpeedup(ratio, interval)} faster than ${than}`;
  const inverse = interval && {
    low: interval.high === null ? 0 : 1 / interval.high,
    high: interval.low > 0 ? 1 / interval.low : null,
  };
  return `${formatSpeedup(1 / ratio, inverse)} slower than ${than}`;
}

function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
