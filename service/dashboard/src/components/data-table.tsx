import {
  type ColumnDef,
  createSortedRowModel,
  type Header,
  type ReactTable,
  type RowData,
  rowSortingFeature,
  type SortDirection,
  sortFn_alphanumeric,
  sortFn_basic,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import type { ReactNode } from "react";
import classes from "./data-table.module.css";
import { useSorting } from "./use-sorting";

interface ColumnMeta {
  /** Numbers stand at the right, digits under digits. */
  numeric?: boolean;
  /** How wide the column is in a virtual table, as CSS has it for a grid. */
  width?: string;
}

export const features = tableFeatures({
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
  sortFns: { alphanumeric: sortFn_alphanumeric, basic: sortFn_basic },
  columnMeta: {} as ColumnMeta,
});

// biome-ignore lint/suspicious/noExplicitAny: a list of columns holds values of many types, as TanStack types it.
export type Columns<Row extends RowData> = ColumnDef<typeof features, Row, any>[];

interface DataTableProps<Row extends RowData> {
  label: string;
  columns: Columns<Row>;
  rows: Row[];
  rowId(row: Row): string;
  /**
   * The parameter of the address that keeps how the table is sorted. Left out where the rows are one page of many:
   * sorting a part would mislead.
   */
  sortParam?: string;
}

const ARIA_SORT = { asc: "ascending", desc: "descending" } as const;

/** A table that turns into a list of cards on a phone. Its roles are spelt out, for CSS display would drop them. */
export function DataTable<Row extends RowData>({
  label,
  columns,
  rows,
  rowId,
  sortParam,
}: DataTableProps<Row>) {
  const { sorting, onSortingChange } = useSorting(sortParam ?? "");
  const table = useTable({
    features,
    columns,
    data: rows,
    getRowId: rowId,
    enableSorting: sortParam !== undefined,
    state: { sorting },
    onSortingChange,
  });
  return (
    <div className={classes.scroll}>
      {/* biome-ignore-start lint/a11y/noRedundantRoles: see above */}
      <table role="table" aria-label={label} className={classes.table}>
        <thead role="rowgroup">
          {table.getHeaderGroups().map((group) => (
            <tr role="row" key={group.id}>
              <Heads table={table} headers={group.headers} />
            </tr>
          ))}
        </thead>
        <tbody role="rowgroup">
          {table.getRowModel().rows.map((row) => (
            <tr role="row" key={row.id}>
              {row.getAllCells().map((cell) => (
                <td
                  role="cell"
                  key={cell.id}
                  data-numeric={cell.column.columnDef.meta?.numeric}
                  data-label={labelOf(cell.column.columnDef.header)}
                >
                  <table.FlexRender cell={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {/* biome-ignore-end lint/a11y/noRedundantRoles: see above */}
    </div>
  );
}

interface HeadsProps<Row extends RowData> {
  table: ReactTable<typeof features, Row>;
  headers: Header<typeof features, Row>[];
}

// biome-ignore-start lint/a11y/noRedundantRoles: see above
/** The heads of a table's columns; those that sort are buttons. */
export function Heads<Row extends RowData>({ table, headers }: HeadsProps<Row>) {
  return headers.map((header) => {
    const sorted = header.column.getIsSorted();
    return (
      <th
        role="columnheader"
        scope="col"
        key={header.id}
        data-numeric={header.column.columnDef.meta?.numeric}
        aria-sort={sorted ? ARIA_SORT[sorted] : undefined}
      >
        {header.column.getCanSort() ? (
          <SortButton sorted={sorted} onClick={header.column.getToggleSortingHandler()}>
            <table.FlexRender header={header} />
          </SortButton>
        ) : (
          <table.FlexRender header={header} />
        )}
      </th>
    );
  });
}
// biome-ignore-end lint/a11y/noRedundantRoles: see above

/** What a cell is called where there is no head of the table: a column with a button in its head has no name. */
function labelOf(header: unknown): string | undefined {
  return typeof header === "string" && header !== "" ? header : undefined;
}

interface SortButtonProps {
  sorted: false | SortDirection;
  onClick?: (event: unknown) => void;
  children: ReactNode;
}

function SortButton({ sorted, onClick, children }: SortButtonProps) {
  return (
    <button type="button" className={classes.sort} onClick={onClick}>
      {children}
      <span aria-hidden="true" className={classes.arrow}>
        {sorted === "asc" ? "▲" : sorted === "desc" ? "▼" : ""}
      </span>
    </button>
  );
}
