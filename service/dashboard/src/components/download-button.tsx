import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { download } from "../api/download";
import { ErrorNotice } from "./error-notice";

interface DownloadButtonProps {
  path: string;
  fileName: string;
  children: string;
}

/** Keeps a file of the service. What went wrong is said beneath it. */
export function DownloadButton({ path, fileName, children }: DownloadButtonProps) {
  const { mutate, isPending, error } = useMutation({ mutationFn: () => download(path, fileName) });
  return (
    <div>
      <Button variant="default" size="xs" loading={isPending} onClick={() => mutate()}>
        {children}
      </Button>
      {error && <ErrorNotice error={error} />}
    </div>
  );
}
