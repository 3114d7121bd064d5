import type { Task } from "../api/types";

/** A module of a model, or a function in it, with the time that one run of the model spends there. */
export interface Node {
  name: string;
  /** Microseconds. */
  value: number;
  children: Node[];
}

type When = "baseline_us" | "best_us";

/**
 * A model's time by its modules. A function that is called in several places has its time in each of them, in equal
 * parts; one without a source stands by itself.
 */
export function modelTree(tasks: readonly Task[], when: When): Node[] {
  const root: Node = { name: "", value: 0, children: [] };
  for (const task of tasks) {
    const time = task.weight * (task[when] ?? 0);
    const sources = task.sources?.length ? task.sources : [""];
    for (const source of sources) add(root, [...pathOf(source), task.name], time / sources.length);
  }
  return root.children.map(joined);
}

/** The modules of a tree's first level by their time, in words, for those who do not see it. */
export function treeInWords(tree: readonly Node[], format: (share: number) => string): string {
  const whole = tree.reduce((sum, { value }) => sum + value, 0);
  return [...tree]
    .sort((a, b) => b.value - a.value)
    .map(({ name, value }) => `${name} ${format(whole === 0 ? 0 : value / whole)}`)
    .join(", ");
}

/** The parts of a module's path or a node's name; a line of code is one part. */
export function pathOf(source: string): string[] {
  return /:\d+$/.test(source) ? [source] : source.split(/[./]/).filter(Boolean);
}

function add(node: Node, path: string[], time: number) {
  node.value += time;
  const [name, ...rest] = path;
  if (name === undefined) return;
  let child = node.children.find((each) => each.name === name);
  if (child === undefined) {
    child = { name, value: 0, children: [] };
    node.children.push(child);
  }
  add(child, rest, time);
}

/** A node joined with its only child: `encoder`, `layers` becomes `encoder.layers`. A function's name is left out. */
function joined(node: Node): Node {
  const [only, ...others] = node.children;
  if (only === undefined || others.length > 0) return { ...node, children: node.children.map(joined) };
  if (only.children.length === 0) return { ...node, children: [] };
  const inner = joined(only);
  return { ...inner, name: `${node.name}.${inner.name}` };
}
