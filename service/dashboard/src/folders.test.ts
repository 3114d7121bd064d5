import { expect, it } from "vitest";

const SOURCES = import.meta.glob<string>("./**/*.{ts,tsx}", {
  query: "?raw",
  import: "default",
  eager: true,
});
const IMPORT = /(?:from |import\()"(\.[^"]+)"/g;

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** Which folder imports from which; files outside of folders (`main.tsx`) are nobody's. */
function folders(sources: Record<string, string>): Graph {
  const graph = new Map<string, Set<string>>();
  for (const [path, source] of Object.entries(sources)) {
    const importer = folderOf(path);
    if (importer === null) continue;
    for (const [, relative] of source.matchAll(IMPORT)) {
      const imported = folderOf(`.${new URL(relative as string, `file://${path.slice(1)}`).pathname}`);
      if (imported === null || imported === importer) continue;
      graph.set(importer, (graph.get(importer) ?? new Set()).add(imported));
    }
  }
  return graph;
}

function folderOf(path: string): string | null {
  const [, folder, ...rest] = path.split("/");
  return rest.length > 0 && folder ? folder : null;
}

/** A circle as the folders on it, the first one again at the end; null if there is none. */
function circle(graph: Graph): string[] | null {
  const done = new Set<string>();
  function visit(folder: string, trail: string[]): string[] | null {
    if (trail.includes(folder)) return [...trail.slice(trail.indexOf(folder)), folder];
    if (done.has(folder)) return null;
    for (const next of graph.get(folder) ?? []) {
      const found = visit(next, [...trail, folder]);
      if (found) return found;
    }
    done.add(folder);
    return null;
  }
  for (const folder of graph.keys()) {
    const found = visit(folder, []);
    if (found) return found;
  }
  return null;
}

it("no folder imports in a circle", () => {
  expect(folders(SOURCES).get("overview")).toContain("jobs");
  expect(circle(folders(SOURCES))).toBeNull();
});

it("a circle over files that form none is seen", () => {
  const graph = folders({
    "./jobs/a.ts": 'import { b } from "../overview/b";',
    "./overview/b.ts": "",
    "./overview/c.ts": 'const d = () => import("../jobs/d");',
    "./jobs/d.ts": "",
  });
  expect(circle(graph)).toEqual(["jobs", "overview", "jobs"]);
});
