import { Button, Group, NativeSelect } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { SearchField } from "../components/search-field";
import { useQueryState } from "../components/use-query-state";
import { formatTarget } from "../format/target";
import { formatCount } from "../format/units";
import { filtersQuery } from "./queries";

/** A new filter shows another list, from its top row. */
const AT_TOP = { at: null };

/** Search and filters of the list of best schedules. The address contains all of them. */
export function FilterBar() {
  const [params, change] = useQueryState();
  const { data: filters } = useQuery(filtersQuery);
  const isNarrowed = ["q", "op", "device_class"].some((name) => params.get(name));
  return (
    <Group gap="xs" align="flex-end">
      <SearchField
        label="Search"
        placeholder="part of a model, name, op or digest"
        value={params.get("q") ?? ""}
        onSearch={(q) => change({ q, ...AT_TOP })}
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
