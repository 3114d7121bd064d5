import { Link } from "react-router";
import { Tag } from "../components/tag";

/** A word that a user gave a job; it leads to the jobs with the same. */
export function JobTag({ tag }: { tag: string }) {
  return (
    <Link
      to={`/jobs?tag=${encodeURIComponent(tag)}`}
      aria-label={`Jobs tagged ${tag}`}
      style={{ marginInlineEnd: 4 }}
    >
      <Tag tone="neutral">{tag}</Tag>
    </Link>
  );
}
