type Instruction = [name: string, inputs: unknown[], attrs: unknown[], outputs: string[]];

/**
 * A TVM trace (`[instructions, decisions]`) as lines such as `v4, v5 = SamplePerfectTile(l1, 2, 64)  # [8,16]`.
 * A trace of another shape comes back as indented JSON, so that nothing is hidden.
 */
export function traceLines(trace: readonly unknown[]): string[] {
  const [instructions, decisions] = trace;
  if (!Array.isArray(instructions) || !instructions.every(isInstruction)) {
    return JSON.stringify(trace, null, 2).split("\n");
  }
  const decided = new Map<number, unknown>(Array.isArray(decisions) ? decisions.filter(isDecision) : []);
  return instructions.map(([name, inputs, attrs, outputs], index) => {
    const results = outputs.length > 0 ? `${outputs.join(", ")} = ` : "";
    // TVM writes random variables as bare names and literal strings within quotes of their own.
    const call = [...inputs, ...attrs.map((attr) => JSON.stringify(attr))].map(argument).join(", ");
    const decision = decided.has(index) ? `  # ${JSON.stringify(decided.get(index))}` : "";
    return `${results}${name}(${call})${decision}`;
  });
}

/** Whether a trace has decisions: the schedules of some rules sample nothing, and an import may lack them. */
export function hasDecisions(trace: readonly unknown[] | null): boolean {
  return Array.isArray(trace?.[1]) && trace[1].length > 0;
}

function argument(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function isInstruction(value: unknown): value is Instruction {
  return (
    Array.isArray(value) &&
    value.length === 4 &&
    typeof value[0] === "string" &&
    Array.isArray(value[1]) &&
    Array.isArray(value[2]) &&
    Array.isArray(value[3])
  );
}

function isDecision(value: unknown): value is [number, unknown] {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === "number";
}
