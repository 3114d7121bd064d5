import { CloseButton, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";

const TYPING_MS = 250;

interface SearchFieldProps {
  label: string;
  placeholder: string;
  /** What the address says. */
  value: string;
  /** Called when the typing pauses, and with an empty text at once when the field is cleared. */
  onSearch(text: string): void;
  maw?: string;
}

/** A text that narrows a list while it is typed. */
export function SearchField({ label, placeholder, value, onSearch, maw = "24rem" }: SearchFieldProps) {
  const [typed, setTyped] = useState(value);
  const search = useDebouncedCallback(onSearch, TYPING_MS);
  // The back button changes the address, and the field follows.
  useEffect(() => setTyped(value), [value]);
  return (
    <TextInput
      label={label}
      placeholder={placeholder}
      size="sm"
      style={{ flex: "1 1 10rem" }}
      maw={maw}
      value={typed}
      onChange={({ currentTarget }) => {
        setTyped(currentTarget.value);
        search(currentTarget.value);
      }}
      rightSection={
        typed && (
          <CloseButton
            size="sm"
            aria-label={`Clear the ${label.toLowerCase()}`}
            onClick={() => {
              setTyped("");
              onSearch("");
            }}
          />
        )
      }
    />
  );
}
