import classes from "./command.module.css";
import { CopyText } from "./copy-text";

/** Lines to be copied and run elsewhere. */
export function Command({ label, text }: { label: string; text: string }) {
  return (
    <figure className={classes.command}>
      <figcaption className={classes.caption}>
        {label}
        <CopyText text={text} what={`the ${label} lines`} />
      </figcaption>
      <pre className={classes.text}>{text}</pre>
    </figure>
  );
}
