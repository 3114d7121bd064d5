import { Button, CloseButton, Group, NativeSelect, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useQueryState } from "../components/use-query-state";
import { formatTarget } from "../format/target";
import { formatCount } from "../format/units";
import { filtersQuery } from "./queries";

const TYPING_MS = 250;
/** A new filter shows another list, from its top row. */
const AT_TOP = { at: null };

/** Search and filters of the leaderboard. The address contains all of them. */
export function FilterBar() {
  const [params, change] = useQueryState();
  const { data: filters } = useQuery(filtersQuery);
  const q = params.get("q") ?? "";
  const [typed, setTyped] = useState(q);
  const search = useDebouncedCallback((text: string) => change({ q: text, ...AT_TOP }), TYPING_MS);
  // The back button changes the address, and the search field follows.
  useEffect(() => setTyped(q), [q]);

  const isNarrowed = ["q", "op", "device_class"].some((name) => params.get(name));
  return (
    <Group gap="xs" align="flex-end">
      <TextInput
        label="Search"
        placeholder="name, op or digest"
        size="sm"
        style={{ flex: "1 1 14rem" }}
        maw="24rem"
        value={typed}
        onChange={({ currentTarget: { value } }) => {
          setTyped(value);
          search(value);
        }}
        rightSection={
          typed && (
            <CloseButton
              size="sm"
              aria-label="Clear the search"
              onClick={() => {
                setTyped("");
                change({ q: null, ...AT_TOP });
              }}
            />
          )
        }
      />
      <NativeSelect
        label="Op"
        value={params.get("op") ?? ""}
        onChange={({ currentTarget: { value } }) => change({ op: value, ...AT_TOP }, true)}
        data={[
          { value: "", label: "All ops" },
          ...(filters?.ops ?? []).map(({ op, bests }) => ({
            value: op,
            label: `${op} (${formatCount(bests)})`,
          })),
        ]}
      />
      <NativeSelect
        label="Device class"
        value={params.get("device_class") ?? ""}
        onChange={({ currentTarget: { value } }) => change({ device_class: value, ...AT_TOP }, true)}
        data={[
          { value: "", label: "All device classes" },
          ...(filters?.device_classes ?? []).map((found) => ({
            value: found.device_class,
            label: `${formatTarget(found.target)}, ${found.device_model} (${formatCount(found.bests)})`,
          })),
        ]}
        style={{ flex: "0 1 20rem", minWidth: 0 }}
      />
      {isNarrowed && (
        <Button
          variant="subtle"
          onClick={() => change({ q: null, op: null, device_class: null, ...AT_TOP }, true)}
        >
          Clear all
        </Button>
      )}
    </Group>
  );
}
