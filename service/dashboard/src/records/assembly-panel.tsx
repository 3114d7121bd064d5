import { Button, Checkbox, Group, Loader, SegmentedControl, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Assembly, RecordDetail } from "../api/types";
import { CodePane } from "../code/code-pane";
import { ListingPane } from "../code/listing-pane";
import { ErrorNotice } from "../components/error-notice";
import { Panel } from "../components/panel";
import { useFlag, useQueryState } from "../components/use-query-state";
import classes from "./assembly-panel.module.css";
import { HotLoop } from "./hot-loop";
import { focusOf, hotLoopOf, hotProgramLines, linksOf, shownLines } from "./machine-code";
import { assemblyQuery } from "./queries";

/** The machine code of the program, compiled on request (`?assembly=1`). */
export function AssemblyPanel({ record }: { record: RecordDetail }) {
  const [wanted, setWanted] = useFlag("assembly");
  const { data, error, isFetching, refetch } = useQuery({ ...assemblyQuery(record.id), enabled: wanted });
  return (
    <Panel
      title="Machine code"
      aside={
        data === undefined && (
          <Button size="xs" variant="default" loading={isFetching} onClick={() => setWanted(true)}>
            Compile and show
          </Button>
        )
      }
    >
      <div style={{ padding: "0 1rem 1rem" }}>
        {data &&
          (data.language === "asm" ? (
            <LinkedCode assembly={data} source={record.script_before} />
          ) : (
            <CodePane label="CUDA C" code={data.text} language={data.language} />
          ))}
        {error && <ErrorNotice error={error} onRetry={() => refetch()} />}
        {data === undefined && !error && (
          <Group gap="xs" role="status">
            {isFetching && <Loader size="xs" />}
            <Text size="sm" c="var(--muted)">
              {isFetching
                ? "Compiling …"
                : "The service compiles the program for its target in a separate process, which takes some seconds."}
            </Text>
          </Group>
        )}
      </div>
    </Panel>
  );
}

const EXTENTS = [
  { value: "hot", label: "Hot loop" },
  { value: "all", label: "All code" },
];

/**
 * The unscheduled program, the scheduled one and the assembly. Lines that belong together have a colour, and picking
 * one (`?line=`, of the scheduled program) picks the others.
 */
function LinkedCode({ assembly, source }: { assembly: Assembly; source: string }) {
  const [params, change] = useQueryState();
  const [directives, setDirectives] = useFlag("directives");
  const all = params.get("code") === "all";
  const picked = Number(params.get("line") ?? Number.NaN);
  const links = useMemo(() => linksOf(assembly), [assembly]);
  const shown = useMemo(() => shownLines(assembly, { all, directives }), [assembly, all, directives]);
  const hot = hotLoopOf(assembly);
  const isHot = (line: number) => hot !== null && hot.first <= line && line <= hot.last;
  const hotProgram = useMemo(() => hotProgramLines(assembly, links), [assembly, links]);
  const focus = useMemo(() => focusOf(assembly, links), [assembly, links]);
  const tintOfProgram = (line: number) => links.tints.get(line);
  const programOfSource = (line: number) => [...links.sourceOf].find(([, of]) => of === line)?.[0];
  const pick = (line: number | undefined) =>
    change({ line: line === undefined || line === picked ? null : line });
  return (
    <Stack gap="md">
      <HotLoop assembly={assembly} />
      <Group justify="space-between" gap="sm">
        <Text size="sm" c="var(--muted)" maw="44rem">
          Lines that belong together have one colour, by the debug locations of the compiler. Choose the
          number of a line to find the others. The edge marks the hot loop.
        </Text>
        <Group gap="md">
          {hot !== null && (
            <SegmentedControl
              size="xs"
              aria-label="Shown assembly"
              data={EXTENTS}
              value={all ? "all" : "hot"}
              onChange={(next) => change({ code: next === "all" ? "all" : null })}
            />
          )}
          <Checkbox
            size="xs"
            label="Directives"
            checked={directives}
            onChange={(event) => setDirectives(event.currentTarget.checked)}
          />
        </Group>
      </Group>
      <div className={classes.panes}>
        <div className={classes.programs}>
          <ListingPane
            label="Unscheduled program"
            code={source}
            language="python"
            tintOf={(line) => {
              const program = programOfSource(line);
              return program === undefined ? undefined : links.tints.get(program);
            }}
            focus={focus === undefined ? undefined : links.sourceOf.get(focus)}
            isPicked={(line) => links.sourceOf.get(picked) === line}
            onPick={(line) => pick(programOfSource(line))}
          />
          <ListingPane
            label="Program as compiled"
            code={assembly.program}
            language="python"
            tintOf={tintOfProgram}
            isHot={(line) => hotProgram.has(line)}
            focus={focus}
            isPicked={(line) => line === picked}
            onPick={pick}
          />
        </div>
        <ListingPane
          label="Assembly"
          code={assembly.text}
          language="asm"
          shown={shown}
          tintOf={(line) => {
            const program = links.programOf.get(line);
            return program === undefined ? undefined : links.tints.get(program);
          }}
          isHot={isHot}
          focus={hot?.first}
          isPicked={(line) => links.programOf.get(line) === picked}
          onPick={(line) => pick(links.programOf.get(line))}
        />
      </div>
    </Stack>
  );
}
