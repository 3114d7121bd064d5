import { Button, Group, Paper, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { RecordDetail } from "../api/types";
import { DiffPane } from "../code/diff-pane";
import { PairHead } from "../components/pair-head";
import { Panel } from "../components/panel";
import { Ready } from "../components/ready";
import { useQueryState } from "../components/use-query-state";
import { functionName } from "../format/function-name";
import { traceOf } from "../records/program-panel";
import { recordQuery } from "../records/queries";
import { FIRST_MEASURED } from "../records/race";
import { SampleStrips } from "../records/sample-strips";
import { FactTable } from "./fact-table";

const VIEWS = [
  { value: "program", label: "Program" },
  { value: "trace", label: "Trace as code" },
];

/** Any two records side by side. Which two is in the address (`?a=&b=`). */
export default function ComparePage() {
  const [params, change] = useQueryState();
  const a = params.get("a") ?? "";
  const b = params.get("b") ?? "";
  return (
    <Stack gap="md">
      <PairHead
        title="Compare two schedules"
        up={{ to: "/bests", label: "Best schedules" }}
        a={a}
        b={b}
        onChange={change}
      />
      {a !== "" && b !== "" ? <Both key={`${a} ${b}`} a={a} b={b} /> : <Choose a={a} b={b} />}
    </Stack>
  );
}

function Both({ a, b }: { a: string; b: string }) {
  const left = useQuery(recordQuery(a));
  const right = useQuery(recordQuery(b));
  return (
    <Ready query={left} what="record">
      {(leftRecord) => (
        <Ready query={right} what="record">
          {(rightRecord) => <Comparison left={leftRecord} right={rightRecord} />}
        </Ready>
      )}
    </Ready>
  );
}

function Comparison({ left, right }: { left: RecordDetail; right: RecordDetail }) {
  const [params, change] = useQueryState();
  const view = params.get("show") === "trace" ? "trace" : "program";
  const codeOf = (record: RecordDetail) => (view === "trace" ? traceOf(record) : record.script_after);
  const labelOf = (side: string, record: RecordDetail) => `${side}: ${functionName(record)}`;
  return (
    <>
      <Panel title="Facts">
        <FactTable left={left} right={right} />
      </Panel>
      <Panel title={`Samples, ${FIRST_MEASURED}`}>
        <div style={{ padding: "0 1rem 1rem" }}>
          <SampleStrips
            sets={[
              { label: labelOf("Left", left), runSecs: left.run_secs },
              { label: labelOf("Right", right), runSecs: right.run_secs },
            ]}
          />
        </div>
      </Panel>
      <Panel
        title="Difference"
        aside={
          <SegmentedControl
            size="xs"
            aria-label="Compared texts"
            data={VIEWS}
            value={view}
            onChange={(next) => change({ show: next === "program" ? null : next })}
          />
        }
      >
        <div style={{ padding: "0 1rem 1rem" }}>
          <DiffPane
            left={{ label: labelOf("Left", left), code: codeOf(left) }}
            right={{ label: labelOf("Right", right), code: codeOf(right) }}
            language="python"
          />
        </div>
      </Panel>
    </>
  );
}

function Choose(given: { a: string; b: string }) {
  const [, change] = useQueryState();
  const [a, setA] = useState(given.a);
  const [b, setB] = useState(given.b);
  function compare(event: FormEvent) {
    event.preventDefault();
    change({ a: idOf(a), b: idOf(b) }, true);
  }
  return (
    <Paper withBorder p="md" bg="var(--surface)">
      <form onSubmit={compare}>
        <Text size="sm" c="var(--muted)" mb="sm">
          Paste the ids of two records, or the addresses of their pages. The views of a workload and of a
          schedule also link to comparisons.
        </Text>
        <Group align="flex-end" gap="sm">
          <TextInput label="Left" value={a} onChange={(event) => setA(event.currentTarget.value)} />
          <TextInput label="Right" value={b} onChange={(event) => setB(event.currentTarget.value)} />
          <Button type="submit" disabled={idOf(a) === "" || idOf(b) === ""}>
            Compare
          </Button>
        </Group>
      </form>
    </Paper>
  );
}

/** A record's id, from itself or from the address of its page. */
function idOf(text: string): string {
  return (/\/records\/([^/?#]+)/.exec(text)?.[1] ?? text).trim();
}
