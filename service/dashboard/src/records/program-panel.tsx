import { SegmentedControl } from "@mantine/core";
import type { RecordDetail } from "../api/types";
import { CodePane } from "../code/code-pane";
import { DiffPane } from "../code/diff-pane";
import { Panel } from "../components/panel";
import { useQueryState } from "../components/use-query-state";
import { traceLines } from "./trace";

const VIEWS = [
  { value: "diff", label: "Before and after" },
  { value: "after", label: "After" },
  { value: "trace", label: "Trace as code" },
];

/** The program before and after, and the trace that leads from one to the other (`?program=`). */
export function ProgramPanel({ record }: { record: RecordDetail }) {
  const [params, change] = useQueryState();
  const views = record.trace === null ? VIEWS.slice(0, 2) : VIEWS;
  const view = views.find(({ value }) => value === params.get("program"))?.value ?? "diff";
  const after = record.is_baseline ? "After: the baseline, unchanged" : "After: scheduled";
  return (
    <Panel
      title="Program"
      aside={
        <SegmentedControl
          size="xs"
          aria-label="View of the program"
          data={views}
          value={view}
          onChange={(next) => change({ program: next === "diff" ? null : next })}
        />
      }
    >
      <div style={{ padding: "0 1rem 1rem" }}>
        {view === "diff" && (
          <DiffPane
            left={{ label: "Before: unscheduled", code: record.script_before }}
            right={{ label: after, code: record.script_after }}
            language="python"
          />
        )}
        {view === "after" && <CodePane label={after} code={record.script_after} language="python" />}
        {view === "trace" && (
          <CodePane label="The trace, as calls on a schedule sch" code={traceOf(record)} language="python" />
        )}
      </div>
    </Panel>
  );
}

/** The trace as Python; if the service cannot write it, its instructions with their decisions. */
export function traceOf({ trace, trace_python }: RecordDetail): string {
  return trace_python ?? (trace === null ? "" : traceLines(trace).join("\n"));
}
