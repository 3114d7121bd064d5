interface Named {
  name: string;
  /** Where the model calls it, if it is known. */
  source?: string | null | undefined;
}

/**
 * What people call a function: where the model calls it, if it is known. The name follows if others are called there,
 * and a place without a word, as that of a layer of `nn.Sequential`.
 */
export function functionName({ source, name }: Named, all: readonly Named[] = []): string {
  if (source == null) return name;
  const isTelling = /\p{L}/u.test(source) && all.filter((each) => each.source === source).length < 2;
  return isTelling ? source : `${source} (${name})`;
}
