// What the first view loads must stay small: its code with all that it imports, and its style sheets, compressed.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT_KB = 500;
const ENTRY = "index.html";
const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", dist), "utf8"));

function filesOf(name, seen = new Set()) {
  const { file, css = [], imports = [] } = manifest[name];
  for (const each of [file, ...css]) seen.add(each);
  for (const each of imports) filesOf(each, seen);
  return seen;
}

const files = [...filesOf(ENTRY)];
const bytes = files.reduce((sum, file) => sum + gzipSync(readFileSync(new URL(file, dist))).length, 0);
const kb = Math.round(bytes / 1000);
console.log(`The first view is ${kb} kB compressed, in ${files.length} files; the limit is ${LIMIT_KB} kB.`);
if (kb > LIMIT_KB) process.exit(1);
