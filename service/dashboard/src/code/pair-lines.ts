/** Lines that share less than this are two lines, not one that changed. */
const LEAST_SIMILARITY = 0.5;

/** Beyond this many comparisons lines are not paired: such large changes are not read word by word. */
const MOST_COMPARISONS = 250_000;

/**
 * Which of some removed lines became which of the added ones, as pairs of places, both ascending: the pairing in order
 * with the largest similarity in all.
 */
export function pairLines(removed: readonly string[], added: readonly string[]): [number, number][] {
  const [rows, columns] = [removed.length, added.length];
  if (rows * columns > MOST_COMPARISONS) return [];
  const [left, right] = [removed.map(wordsOf), added.map(wordsOf)];
  const width = columns + 1;
  // best[r][c]: the largest similarity of the lines from r and c on.
  const best = new Float64Array((rows + 1) * width);
  const gain = new Float64Array(rows * columns);
  for (let r = rows - 1; r >= 0; r--) {
    for (let c = columns - 1; c >= 0; c--) {
      const alike = similarity(left[r] as Words, right[c] as Words);
      gain[r * columns + c] = alike >= LEAST_SIMILARITY ? alike : Number.NEGATIVE_INFINITY;
      best[r * width + c] = Math.max(
        best[(r + 1) * width + c] as number,
        best[r * width + c + 1] as number,
        (gain[r * columns + c] as number) + (best[(r + 1) * width + c + 1] as number),
      );
    }
  }
  const pairs: [number, number][] = [];
  for (let r = 0, c = 0; r < rows && c < columns; ) {
    const here = best[r * width + c];
    if (here === (gain[r * columns + c] as number) + (best[(r + 1) * width + c + 1] as number))
      pairs.push([r++, c++]);
    else if (here === best[(r + 1) * width + c]) r++;
    else c++;
  }
  return pairs;
}

type Words = Map<string, number>;

function wordsOf(line: string): Words {
  const words: Words = new Map();
  for (const word of line.match(/\w+|[^\w\s]/g) ?? []) words.set(word, (words.get(word) ?? 0) + 1);
  return words;
}

/** Dice's coefficient of two bags of words: 0 where none is shared, 1 where all are. */
function similarity(a: Words, b: Words): number {
  let shared = 0;
  for (const [word, count] of a) shared += Math.min(count, b.get(word) ?? 0);
  const total = sizeOf(a) + sizeOf(b);
  return total === 0 ? 1 : (2 * shared) / total;
}

function sizeOf(words: Words): number {
  let size = 0;
  for (const count of words.values()) size += count;
  return size;
}
