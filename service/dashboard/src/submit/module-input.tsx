import { Button, FileButton, Group, Text, Textarea } from "@mantine/core";
import { type DragEvent, useState } from "react";
import classes from "./module-input.module.css";

const MOST_BYTES = 50_000_000;

interface ModuleInputProps {
  code: string;
  error?: string;
  /** `fileName` is given if the module came from a file. */
  onChange(code: string, fileName?: string): void;
}

/** Input of a module: pasted text, or a dropped or chosen file. */
export function ModuleInput({ code, error, onChange }: ModuleInputProps) {
  const [over, setOver] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);

  async function read(file: File | null | undefined) {
    if (!file) return;
    if (file.size > MOST_BYTES) {
      setRefused(
        `${file.name} is larger than ${MOST_BYTES / 1e6} MB. Submit it from the command line: loopwright job submit FILE.`,
      );
      return;
    }
    setRefused(null);
    onChange(await file.text(), file.name);
  }

  function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    read(event.dataTransfer.files[0]);
  }

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a file can be chosen by the button, too
    <div
      className={classes.place}
      data-over={over}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <Textarea
        label="Module"
        description="TVMScript, or TVM's JSON. Paste it, or drop a .py or .json file here."
        placeholder={"@I.ir_module\nclass Module:\n    …"}
        autosize
        minRows={20}
        maxRows={28}
        spellCheck={false}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: "0.8125rem" } }}
        value={code}
        error={error ?? refused}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      <Group gap="xs" mt="xs">
        <FileButton accept=".py,.json,.txt,text/plain,application/json" onChange={read}>
          {(props) => (
            <Button {...props} variant="default" size="xs">
              Choose a file
            </Button>
          )}
        </FileButton>
        {code !== "" && (
          <Text size="xs" c="var(--muted)" className="numeric">
            {code.split("\n").length} lines
          </Text>
        )}
      </Group>
    </div>
  );
}
