import { Button, Group } from "@mantine/core";
import { useMemo } from "react";
import { CopyText } from "../components/copy-text";
import { useFlag } from "../components/use-query-state";
import { plural } from "../format/units";
import classes from "./code.module.css";
import { CodeLine } from "./code-line";
import { type DiffRow, diffRows, withContext } from "./diff";
import { highlight, type Line } from "./highlight";

const CONTEXT = 3;

interface Program {
  label: string;
  code: string;
}

interface DiffPaneProps {
  left: Program;
  right: Program;
  language: string;
}

/** Two programs side by side. Lines of one side only are tinted and have a sign; changed words are marked. */
export function DiffPane({ left, right, language }: DiffPaneProps) {
  const [all, setAll] = useFlag("all");
  const lines = useMemo(
    () => ({ left: highlight(left.code, language), right: highlight(right.code, language) }),
    [left.code, right.code, language],
  );
  const rows = useMemo(() => diffRows(textOf(lines.left), textOf(lines.right)), [lines]);
  const shown = all ? rows : withContext(rows, CONTEXT);
  const count = (kind: "left" | "right") =>
    rows.filter((row) => row.kind !== "same" && row[kind] !== null).length;
  const differ = rows.some((row) => row.kind !== "same");
  return (
    <div>
      <Group justify="space-between" mb="xs" gap="xs">
        <span className="muted numeric" style={{ fontSize: "0.8125rem" }}>
          {differ
            ? `${plural(count("left"), "line")} only on the left, ${plural(count("right"), "line")} only on the right`
            : "Both sides are the same."}
        </span>
        {differ && (
          <Button size="compact-xs" variant="default" aria-pressed={all} onClick={() => setAll(!all)}>
            {all ? "Hide equal lines" : "Show all lines"}
          </Button>
        )}
      </Group>
      <div className={`${classes.pane} ${classes.rows}`}>
        <SideColumn program={left} rows={differ ? shown : rows} lines={lines.left} side="left" />
        <SideColumn program={right} rows={differ ? shown : rows} lines={lines.right} side="right" />
      </div>
    </div>
  );
}

interface SideColumnProps {
  program: Program;
  rows: (DiffRow | number)[];
  lines: Line[];
  side: "left" | "right";
}

function SideColumn({ program: { label, code }, rows, lines, side }: SideColumnProps) {
  const differs = side === "left" ? { kind: "removed", sign: "−" } : { kind: "added", sign: "+" };
  return (
    <div className={classes.column}>
      <div className={`${classes.caption} ${classes.above}`}>
        <span>{label}</span>
        <CopyText text={code} what={label} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className={classes.side} tabIndex={0} aria-label={label}>
        <pre className={classes.lines}>
          {rows.map((row, index) => {
            if (typeof row === "number") {
              return (
                // biome-ignore lint/suspicious/noArrayIndexKey: a row is known by its place
                <span key={index} className={classes.row} data-kind="skipped">
                  {` ⋯ ${plural(row, "equal line")}\n`}
                </span>
              );
            }
            const mine = row[side];
            const { kind, sign } = row.kind === "same" ? { kind: "same", sign: " " } : differs;
            return (
              <span
                // biome-ignore lint/suspicious/noArrayIndexKey: a row is known by its place
                key={index}
                className={classes.row}
                data-kind={mine === null ? "none" : kind}
                data-number={mine === null ? undefined : mine.line + 1}
              >
                <span className={classes.sign}>{mine === null ? " " : sign}</span>
                {mine !== null && <CodeLine line={lines[mine.line] as Line} changed={mine.changed} />}
                {"\n"}
              </span>
            );
          })}
        </pre>
      </section>
    </div>
  );
}

function textOf(lines: Line[]): string[] {
  return lines.map((line) => line.map(({ text }) => text).join(""));
}
