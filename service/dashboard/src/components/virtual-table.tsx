import { useMediaQuery } from "@mantine/hooks";
import { type OnChangeFn, type RowData, type SortingState, useTable } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, useEffect, useRef } from "react";
import { type Columns, features, Heads } from "./data-table";
import classes from "./virtual-table.module.css";

const ROW_PX = 52;
const CARD_PX = 268;
const OVERSCAN = 12;

export interface VirtualTableProps<Row extends RowData> {
  label: string;
  columns: Columns<Row>;
  /** Names the list: another one is shown from its own top. */
  list: string;
  total: number;
  /** The row at a place from 0; undefined while it is not loaded. */
  rowAt(index: number): Row | undefined;
  rowId(row: Row): string;
  sorting: SortingState;
  onSortingChange: OnChangeFn<SortingState>;
  /** Whether the rows are about to be replaced. */
  busy: boolean;
  /** The row that stands at the top when a list is first shown. */
  top: number;
  /** Called whenever the view moves, with the row at its top, and the first and the last that are to be drawn. */
  onView(top: number, first: number, last: number): void;
}

/**
 * A table of any number of rows, sorted elsewhere, of which only those in view are in the page. It scrolls by itself
 * under its head. Its roles are spelt out, for CSS display would drop them.
 */
export function VirtualTable<Row extends RowData>(props: VirtualTableProps<Row>) {
  const { label, columns, list, total, rowAt, rowId, busy, sorting, onSortingChange, top, onView } = props;
  const narrow = useMediaQuery("(max-width: 48rem)", false, { getInitialValueInEffect: false }) ?? false;
  const rowPx = narrow ? CARD_PX : ROW_PX;
  const place = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: total,
    getScrollElement: () => place.current,
    estimateSize: () => rowPx,
    initialOffset: top * rowPx,
    overscan: OVERSCAN,
  });
  const items = virtual.getVirtualItems();
  const loaded = items.map(({ index }) => rowAt(index));
  const table = useTable({
    features,
    columns,
    data: loaded.filter((row) => row !== undefined),
    getRowId: rowId,
    manualSorting: true,
    enableMultiSort: false,
    state: { sorting },
    onSortingChange,
  });
  const { rowsById } = table.getRowModel();

  const atTop = Math.floor((virtual.scrollOffset ?? 0) / rowPx);
  const first = items[0]?.index;
  const last = items.at(-1)?.index;
  useEffect(() => {
    if (first !== undefined && last !== undefined) onView(atTop, first, last);
  }, [atTop, first, last, onView]);
  // Rows change their height with the width of the page, and their number with the list: both move what is in view.
  // biome-ignore lint/correctness/useExhaustiveDependencies: where the reader scrolls to must not be undone
  useEffect(() => {
    virtual.measure();
    virtual.scrollToOffset(top * rowPx);
  }, [rowPx, list]);

  const widths = columns.map((column) => column.meta?.width ?? "minmax(5rem, 1fr)").join(" ");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <div ref={place} className={classes.scroll} tabIndex={0} style={{ "--widths": widths } as CSSProperties}>
      {/* biome-ignore-start lint/a11y/noRedundantRoles: see above */}
      <table role="table" aria-label={label} aria-rowcount={total + 1} className={classes.table}>
        <thead role="rowgroup" className={classes.head}>
          {table.getHeaderGroups().map((group) => (
            <tr role="row" aria-rowindex={1} key={group.id} className={classes.row}>
              <Heads table={table} headers={group.headers} />
            </tr>
          ))}
        </thead>
        <tbody
          role="rowgroup"
          aria-busy={busy}
          className={classes.body}
          style={{ height: virtual.getTotalSize() }}
        >
          {items.map(({ index, start, size }, place) => {
            const row = loaded[place];
            const cells = row === undefined ? [] : (rowsById[rowId(row)]?.getAllCells() ?? []);
            return (
              <tr
                role="row"
                key={index}
                aria-rowindex={index + 2}
                className={classes.row}
                style={{ transform: `translateY(${start}px)`, height: size }}
              >
                {cells.map((cell) => (
                  <td
                    role="cell"
                    key={cell.id}
                    data-numeric={cell.column.columnDef.meta?.numeric}
                    data-label={String(cell.column.columnDef.header)}
                  >
                    <table.FlexRender cell={cell} />
                  </td>
                ))}
                {row === undefined && (
                  <td role="cell" className={classes.waiting}>
                    <span>row {index + 1}</span>
                  </td>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
      {/* biome-ignore-end lint/a11y/noRedundantRoles: see above */}
    </div>
  );
}
