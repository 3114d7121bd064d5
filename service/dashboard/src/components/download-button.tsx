import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { download } from "../api/download";
import { ErrorNotice } from "./error-notice";

interface DownloadButtonProps {
  path: string;
  fileName: string;
  children: string;
}

/** Downloads a file of the service. Errors are shown below the button. */
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
