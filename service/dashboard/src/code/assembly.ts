import type { LanguageFn } from "highlight.js";

/** Assembly as LLVM and NVIDIA write it (AT&T x86, AArch64, PTX): what stands first on a line is what is done. */
export const assembly: LanguageFn = () => ({
  name: "Assembly",
  contains: [
    { scope: "comment", begin: /(#|\/\/).*$/ },
    { scope: "comment", begin: /\/\*/, end: /\*\// },
    { scope: "string", begin: /"/, end: /"/ },
    { scope: "symbol", begin: /^[A-Za-z_.$][\w.$]*:/ },
    { scope: "meta", begin: /^\s*\.\w+/ },
    { scope: "keyword", begin: /^\s*(@!?%\w+\s+)?[a-z][\w.]*/ },
    { scope: "variable", begin: /%[\w.]+/ },
    { scope: "number", begin: /\$?-?\b(0[xfd][\da-f]+|\d+)\b/i },
  ],
});
