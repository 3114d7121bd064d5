import { problemToError, UnreachableError } from "./errors";

/** Fetches a file, of which a plain link could not show an error, and gives it to the browser to keep. */
export async function download(path: string, fileName: string): Promise<void> {
  const response = await fetch(path).catch(() => {
    throw new UnreachableError();
  });
  if (!response.ok) throw problemToError(response.status, await response.json().catch(() => null));
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = fileName;
  link.click();
  URL.revokeObjectURL(address);
}

/** A name that any file system takes. */
export function fileNameOf(name: string): string {
  return name.replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "") || "job";
}
