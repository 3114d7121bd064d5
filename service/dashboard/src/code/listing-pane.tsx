import { useEffect, useMemo, useRef } from "react";
import { CopyText } from "../components/copy-text";
import classes from "./code.module.css";
import { CodeLine } from "./code-line";
import { highlight, type Line } from "./highlight";
import linked from "./listing-pane.module.css";

interface ListingPaneProps {
  label: string;
  code: string;
  language: string;
  /** Numbers of the lines that are shown, from 1; all of them if left out. */
  shown?: number[];
  /** The colour of a line, by number; undefined for a line that belongs to no other. */
  tintOf(line: number): number | undefined;
  /** Lines that are marked by an edge. */
  isHot?(line: number): boolean;
  /** The line that is scrolled to while none is picked out. */
  focus?: number | undefined;
  /** Lines that are picked out. The first of them is scrolled to. */
  isPicked(line: number): boolean;
  onPick(line: number): void;
}

/** A program whose lines belong to lines of other programs: they share a colour, and one can be picked out. */
export function ListingPane({
  label,
  code,
  language,
  shown,
  tintOf,
  isHot,
  focus,
  isPicked,
  onPick,
}: ListingPaneProps) {
  const lines = useMemo(() => highlight(code, language), [code, language]);
  const pane = useRef<HTMLDivElement>(null);
  const numbers = shown ?? lines.map((_, index) => index + 1);
  const first = numbers.find(isPicked) ?? focus;
  useEffect(() => {
    if (first === undefined) return;
    const [box, line] = [pane.current, pane.current?.querySelector(`[data-number="${first}"]`)];
    if (box instanceof HTMLElement && line instanceof HTMLElement) {
      box.scrollTop = line.offsetTop - box.clientHeight / 3;
    }
  }, [first]);
  return (
    <div className={`${classes.pane} ${linked.pane}`}>
      <div className={classes.caption}>
        <span>{label}</span>
        <CopyText text={code} what={label} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className={linked.lines} tabIndex={0} ref={pane} aria-label={label}>
        {numbers.map((number) => {
          const tint = tintOf(number);
          return (
            <div
              key={number}
              className={linked.line}
              data-number={number}
              data-tint={tint}
              data-hot={isHot?.(number) || undefined}
              data-picked={isPicked(number) || undefined}
            >
              {tint === undefined ? (
                <span className={linked.number}>{number}</span>
              ) : (
                <button
                  type="button"
                  className={linked.number}
                  aria-pressed={isPicked(number)}
                  aria-label={`Line ${number} of ${label}`}
                  onClick={() => onPick(number)}
                >
                  {number}
                </button>
              )}
              <code>
                <CodeLine line={lines[number - 1] ?? ([] as Line)} />
              </code>
            </div>
          );
        })}
      </section>
    </div>
  );
}
