import hljs from "highlight.js/lib/core";
import cpp from "highlight.js/lib/languages/cpp";
import python from "highlight.js/lib/languages/python";
import { assembly } from "./assembly";

hljs.registerLanguage("asm", assembly);
hljs.registerLanguage("cuda", cpp);
hljs.registerLanguage("python", python);

/** A stretch of text and what it is: a keyword, a string; null where it is nothing in particular. */
export interface Token {
  text: string;
  scope: string | null;
}

export type Line = Token[];

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'" };
const MARKUP = /<span class="([^"]*)">|<\/span>|([^<]+)/g;

/** Integers of 64 bits in TVMScript, which most are: their type says nothing to a reader, and hides what is there. */
const WIDE_INTEGERS = /\bT\.int64\((-?\d+)\)/g;

/**
 * `code` as lines of tokens, with bare numbers for TVMScript's integers of 64 bits. An unknown language is returned as
 * plain text.
 */
export function highlight(code: string, language: string): Line[] {
  const ending = code.replace(/\n$/, "");
  const trimmed = language === "python" ? ending.replace(WIDE_INTEGERS, "$1") : ending;
  if (hljs.getLanguage(language) === undefined) {
    return trimmed.split("\n").map((text) => [{ text, scope: null }]);
  }
  return linesOf(hljs.highlight(trimmed, { language }).value);
}

/** Takes highlight.js's markup apart, so that React writes it and a token may go over the end of a line. */
function linesOf(markup: string): Line[] {
  const lines: Line[] = [[]];
  const scopes: string[] = [];
  for (const [whole, scope, text] of markup.matchAll(MARKUP)) {
    if (scope !== undefined) scopes.push(scope);
    else if (text === undefined) scopes.pop();
    else {
      const plain = whole.replace(/&(#?\w+);/g, (entity, name: string) => ENTITIES[name] ?? entity);
      plain.split("\n").forEach((part, index) => {
        if (index > 0) lines.push([]);
        if (part !== "") lines.at(-1)?.push({ text: part, scope: scopes.at(-1) ?? null });
      });
    }
  }
  return lines;
}
