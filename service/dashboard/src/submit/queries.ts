import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap } from "../api/client";
import type { Job, SubmitJob } from "../api/types";

/** Previews a submission. Nothing is stored. */
export function usePreview() {
  return useMutation({
    mutationFn: (body: SubmitJob) => unwrap(api.POST("/api/v1/jobs/preview", { body })),
  });
}

interface Submission {
  body: SubmitJob;
  /** The same key for all attempts of one submission, so that a retry creates no second job. */
  key: string;
}

/** Submits a job, or one for each of several targets; gives the first of them, whose page names the others. */
export function useSubmit() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ body, key }: Submission) => {
      const params = { header: { "idempotency-key": key } };
      const made = await unwrap(api.POST("/api/v1/jobs", { body, params }));
      return "jobs" in made ? (made.jobs[0] as Job) : made;
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["jobs"] }),
  });
}

/** A fresh key. `crypto.randomUUID` would be shorter, but exists only where the page came over TLS or from this machine. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");
}
