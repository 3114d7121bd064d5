import { Button, Menu } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Link } from "react-router";
import { download, fileNameOf } from "../api/download";
import { isFinished, type Job } from "../api/types";
import { useMay, useMayCancel, useMayDescribe } from "../auth/queries";
import { ErrorNotice } from "../components/error-notice";
import { CancelButton } from "./cancel-button";
import { DescribeButton } from "./describe-button";
import { ResubmitButton } from "./resubmit-button";

const FILES = [
  { part: "module", suffix: "module.json", label: "Module with the best schedules (JSON)" },
  { part: "records", suffix: "records.tar", label: "Tuning records (TVM's JSON pair, tar)" },
  { part: "chrome-trace", suffix: "trace.json", label: "Chrome trace (opens in Perfetto)" },
];

/** Actions of a job: compare, download results, describe, submit again, cancel. */
export function JobActions({ job }: { job: Job }) {
  const maySubmit = useMay("submit");
  const mayCancel = useMayCancel(job);
  const mayDescribe = useMayDescribe(job);
  return (
    <>
      <Button component={Link} to={`/jobs/compare?a=${job.id}`} variant="default">
        Compare
      </Button>
      <DownloadMenu job={job} />
      {mayDescribe && <DescribeButton job={job} />}
      {maySubmit && <ResubmitButton job={job} />}
      {mayCancel && !isFinished(job.state) && <CancelButton id={job.id} />}
    </>
  );
}

function DownloadMenu({ job }: { job: Job }) {
  const { mutate, isPending, error } = useMutation({
    mutationFn: ({ part, suffix }: { part: string; suffix: string }) =>
      download(`/api/v1/jobs/${job.id}/${part}`, `${fileNameOf(job.name || job.id)}-${suffix}`),
  });
  return (
    <div>
      <Menu position="bottom-end" shadow="md" withInitialFocusPlaceholder={false}>
        <Menu.Target>
          <Button variant="default" loading={isPending}>
            Download
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {FILES.map((file) => (
            <Menu.Item key={file.part} onClick={() => mutate(file)}>
              {file.label}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {error && <ErrorNotice error={error} />}
    </div>
  );
}
