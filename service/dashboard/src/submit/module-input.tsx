import { Button, FileButton, Group, Text, Textarea } from "@mantine/core";
import { type DragEvent, useState } from "react";
import { Command } from "../components/command";
import classes from "./module-input.module.css";

const MOST_BYTES = 50_000_000;
/** Files that the SDK reads: to import them runs PyTorch or ONNX, which the service does not. */
const MODEL_SUFFIXES = [".onnx", ".pt2"];

interface ModuleInputProps {
  code: string;
  error?: string;
  /** The command line that submits a model's file with the options of the form. */
  command(fileName: string): string;
  /** `fileName` is given if the module came from a file. */
  onChange(code: string, fileName?: string): void;
}

/** Input of a module: pasted text, or a dropped or chosen file. */
export function ModuleInput({ code, error, command, onChange }: ModuleInputProps) {
  const [over, setOver] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const [model, setModel] = useState<string | null>(null);

  async function read(file: File | null | undefined) {
    if (!file) return;
    const isModel = MODEL_SUFFIXES.some((suffix) => file.name.toLowerCase().endsWith(suffix));
    if (!isModel && file.size > MOST_BYTES) {
      setRefused(
        `${file.name} is larger than ${MOST_BYTES / 1e6} MB. Submit it from the command line: loopwright job submit FILE.`,
      );
      return;
    }
    setRefused(null);
    setModel(isModel ? file.name : null);
    if (!isModel) onChange(await file.text(), file.name);
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
        description="TVMScript, or TVM's JSON. Paste it, or drop a file here."
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
        <FileButton accept=".py,.json,.txt,.onnx,.pt2,text/plain,application/json" onChange={read}>
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
      {model !== null && <ModelFile name={model} command={command(model)} />}
    </div>
  );
}

/** What to run for a model that is imported where it lies: its weights then stay there, too. */
function ModelFile({ name, command }: { name: string; command: string }) {
  const lines = `export LOOPWRIGHT_URL=${window.location.origin}
export LOOPWRIGHT_TOKEN=…
${command}`;
  return (
    <div role="status" style={{ marginTop: "0.75rem" }}>
      <Text size="sm" mb="xs">
        {`${name} is a model of ONNX or PyTorch. The command line imports it on your machine and sends its functions, without its weights, with the options of this form:`}
      </Text>
      <Command label="Command line" text={lines} />
    </div>
  );
}
