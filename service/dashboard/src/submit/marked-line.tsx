import { excerpt, lineOf } from "./error-line";
import classes from "./marked-line.module.css";

/** The lines of a module around the one that an error names, which is marked; nothing if it names none. */
export function MarkedLine({ code, message }: { code: string; message: string }) {
  const lines = excerpt(code, lineOf(message));
  if (lines.length === 0) return null;
  const named = lines.find(({ isNamed }) => isNamed);
  return (
    <figure className={classes.excerpt} aria-label={`Line ${named?.number} of the module`}>
      {lines.map(({ number, text, isNamed }) => (
        <div key={number} className={classes.line} data-named={isNamed} aria-current={isNamed || undefined}>
          <span className={classes.number}>{number}</span>
          <code>{text || " "}</code>
        </div>
      ))}
    </figure>
  );
}
