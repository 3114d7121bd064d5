import { formatShare } from "../format/units";
import classes from "./share-bar.module.css";

/** A share of one, as a number and as a bar beside it. */
export function ShareBar({ share }: { share: number | null }) {
  if (share === null) return "–";
  return (
    <span className={classes.share}>
      <span className={classes.track} aria-hidden="true">
        <span className={classes.fill} style={{ width: `${100 * Math.min(share, 1)}%` }} />
      </span>
      <span className={classes.word}>{formatShare(share)}</span>
    </span>
  );
}
