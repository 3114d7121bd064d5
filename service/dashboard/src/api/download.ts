import { problemToError, UnreachableError } from "./errors";

/** Fetches a file and lets the browser save it. A plain link could not show an error. */
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

/** Returns a name that every file system accepts. */
export function fileNameOf(name: string): string {
  return name.replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "") || "job";
}
