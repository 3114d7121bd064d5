import { Button, Group, NativeSelect, NumberInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import type { Decisions } from "../api/types";
import { formatLatency } from "../format/units";
import { type Brush, LATENCY } from "./brush";

interface BrushBarProps {
  decisions: Decisions;
  brush: Brush;
  onBrush(brush: Brush): void;
}

/** The active filters, each with a button to remove it, and a form to filter without a mouse. */
export function BrushBar({ decisions, brush, onBrush }: BrushBarProps) {
  return (
    <Group gap="xs" align="flex-end">
      <BrushForm decisions={decisions} onAdd={(name, interval) => onBrush({ ...brush, [name]: interval })} />
      {Object.entries(brush).map(([name, interval]) => (
        <Button
          key={name}
          size="xs"
          variant="light"
          rightSection={<span aria-hidden="true">×</span>}
          aria-label={`Remove the filter on ${name}`}
          onClick={() => onBrush(Object.fromEntries(Object.entries(brush).filter(([each]) => each !== name)))}
        >
          {`${name}: ${intervalInWords(name, interval, decisions)}`}
        </Button>
      ))}
    </Group>
  );
}

interface BrushFormProps {
  decisions: Decisions;
  onAdd(name: string, interval: [number, number]): void;
}

function BrushForm({ decisions, onAdd }: BrushFormProps) {
  const [name, setName] = useState(LATENCY);
  const [low, setLow] = useState<string | number>("");
  const [high, setHigh] = useState<string | number>("");
  const categories = decisions.columns.find((column) => column.name === name)?.categories;

  function add(event: FormEvent) {
    event.preventDefault();
    const from = low === "" ? 0 : Number(low);
    // A category is one place on its axis.
    const to = categories ? from : high === "" ? Number.MAX_SAFE_INTEGER : Number(high);
    onAdd(name, [from, to]);
  }

  return (
    <form onSubmit={add}>
      <Group gap="xs" align="flex-end">
        <NativeSelect
          size="xs"
          label="Filter on"
          value={name}
          onChange={(event) => {
            setName(event.currentTarget.value);
            setLow("");
            setHigh("");
          }}
          data={[LATENCY, ...decisions.columns.map((column) => column.name)]}
          maw="16rem"
        />
        {categories ? (
          <NativeSelect
            size="xs"
            label="Is"
            value={String(low === "" ? 0 : low)}
            onChange={(event) => setLow(event.currentTarget.value)}
            data={categories.map((label, index) => ({ value: String(index), label }))}
          />
        ) : (
          <>
            <NumberInput
              size="xs"
              label={name === LATENCY ? "From µs" : "From"}
              w="6rem"
              value={low}
              onChange={setLow}
            />
            <NumberInput
              size="xs"
              label={name === LATENCY ? "To µs" : "To"}
              w="6rem"
              value={high}
              onChange={setHigh}
            />
          </>
        )}
        <Button type="submit" size="xs" variant="default">
          Add filter
        </Button>
      </Group>
    </form>
  );
}

function intervalInWords(name: string, [low, high]: [number, number], { columns }: Decisions): string {
  const categories = columns.find((column) => column.name === name)?.categories;
  if (categories) {
    return categories.filter((_, index) => index >= low && index <= high).join(", ") || "nothing";
  }
  const number = name === LATENCY ? formatLatency : (value: number) => String(Number(value.toPrecision(3)));
  return high === Number.MAX_SAFE_INTEGER ? `from ${number(low)}` : `${number(low)} to ${number(high)}`;
}
