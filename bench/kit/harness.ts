// How every benchmark measures: the subject and its floor (what the machine or the library can do at best) in
// the same run, by turns, and the median of the ratios of the turns. A ratio survives a slow or a busy
// machine, a number does not.

/** What one turn measured, in the unit of the row: of `compare` more is better, of `cost` less. */
export type Sample = () => Promise<number>;

export interface Sides {
  floor: Sample;
  subject: Sample;
  turns?: number;
}

/** As `Sides`, with a value for each of several rows in every turn. */
export interface ManySides {
  floor: () => Promise<number[]>;
  subject: () => Promise<number[]>;
  turns?: number;
}

export interface Row {
  /** What was measured, unique within its benchmark. */
  name: string;
  unit: string;
  /** Medians over the turns. */
  subject: number;
  floor: number;
  /**
   * The median of subject / floor of each turn, of a cost floor / subject, and the least and greatest of
   * them.
   */
  ratio: number;
  least: number;
  greatest: number;
  /** The median of subject - floor of each turn, in the unit. */
  over: number;
  turns: number;
  /** Of a cost at several sizes: the curve that the row is a point of, and the size that is its floor. */
  curve?: { name: string; size: number; before: number | null };
}

export interface Benchmark {
  name: string;
  question: string;
  /** `minutes`: how long one that goes on until told otherwise is to go on. */
  run(minutes?: number): Promise<Row[]>;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/**
 * Measures `floor` and `subject` by turns; who goes first changes with every turn. The first turn warms up
 * and is not counted.
 */
export async function compare(name: string, unit: string, sides: Sides): Promise<Row> {
  const pairs = await byTurns(many(sides));
  return rowOf(name, unit, pairs, 0, rateRatio);
}

/** Several rates that are measured together, in the order of `names`. */
export async function comparisons(names: readonly string[], unit: string, sides: ManySides): Promise<Row[]> {
  const pairs = await byTurns(sides);
  return names.map((name, column) => rowOf(name, unit, pairs, column, rateRatio));
}

/** The same for what is the better the less there is of it, such as time and memory. */
export async function cost(name: string, unit: string, sides: Sides): Promise<Row> {
  const pairs = await byTurns(many(sides));
  return rowOf(name, unit, pairs, 0, costRatio);
}

/** Several costs that are measured together, in the order of `names`. */
export async function costs(names: readonly string[], unit: string, sides: ManySides): Promise<Row[]> {
  const pairs = await byTurns(sides);
  return names.map((name, column) => rowOf(name, unit, pairs, column, costRatio));
}

/** A cost of one unit at growing sizes; `names` says what a sample measures. */
export interface Growth {
  names: readonly string[];
  unit: string;
  sizes: readonly number[];
  /** How the row calls a size. */
  sizeName: (size: string) => string;
  sample: (size: number) => Promise<number[]>;
  turns?: number;
}

/**
 * Measures every size in every turn. The floor of a size is the size before it: above 1 a unit costs less
 * than it did there, below 1 it costs more, and what grows with the square of the size falls as far below as
 * the size has grown.
 */
export async function growth({ names, unit, sizes, sizeName, sample, turns = 3 }: Growth): Promise<Row[]> {
  const bySize = sizes.map((): number[][] => []);
  for (let turn = 0; turn < turns; turn += 1)
    for (const [index, size] of sizes.entries()) bySize[index]?.push(await sample(size));
  return names.flatMap((name, column) =>
    sizes.slice(1).map((size, index) => {
      const pairs = (bySize[index + 1] ?? []).map((subject, turn) => ({
        subject,
        floor: bySize[index]?.[turn] ?? [],
      }));
      const before = sizes[index] ?? null;
      const title = `${name}, ${sizeName(size.toLocaleString('en'))}`;
      return { ...rowOf(title, unit, pairs, column, costRatio), curve: { name, size, before } };
    }),
  );
}

interface Pair<T> {
  subject: T;
  floor: T;
}

const rateRatio = ({ subject, floor }: Pair<number>): number => subject / floor;
const costRatio = ({ subject, floor }: Pair<number>): number => floor / subject;

const many = ({ floor, subject, ...rest }: Sides): ManySides => ({
  floor: async () => [await floor()],
  subject: async () => [await subject()],
  ...rest,
});

async function byTurns({ floor, subject, turns = 9 }: ManySides): Promise<Pair<number[]>[]> {
  const pairs: Pair<number[]>[] = [];
  for (let turn = 0; turn <= turns; turn += 1) {
    const first = turn % 2 === 0 ? await floor() : null;
    const values = await subject();
    pairs.push({ subject: values, floor: first ?? (await floor()) });
  }
  return pairs.slice(1);
}

function rowOf(
  name: string,
  unit: string,
  pairs: readonly Pair<number[]>[],
  column: number,
  ratioOf: (pair: Pair<number>) => number,
): Row {
  const own = pairs.map(({ subject, floor }) => ({
    subject: subject[column] ?? Number.NaN,
    floor: floor[column] ?? Number.NaN,
  }));
  const ratios = own.map(ratioOf);
  return {
    name,
    unit,
    subject: median(own.map((pair) => pair.subject)),
    floor: median(own.map((pair) => pair.floor)),
    ratio: median(ratios),
    least: Math.min(...ratios),
    greatest: Math.max(...ratios),
    over: median(own.map((pair) => pair.subject - pair.floor)),
    turns: own.length,
  };
}

/** Calls `once` over and over, `inFlight` at a time, for `ms`; calls per second. */
export async function throughput(
  once: () => Promise<unknown>,
  inFlight: number,
  ms: number,
): Promise<number> {
  const begin = performance.now();
  const until = begin + ms;
  let done = 0;
  const lane = async () => {
    while (performance.now() < until) {
      await once();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  return done / ((performance.now() - begin) / 1000);
}
