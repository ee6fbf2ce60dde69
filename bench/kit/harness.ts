// How every benchmark measures. The subject and its floor (the best that the machine or the library can do)
// alternate in the same run, and the result is the median of the ratios of the turns. A slow or busy machine
// changes a ratio much less than the figures themselves.

/** Measures once, in the unit of the row. More is better for `compare`, less for `cost`. */
export type Sample = () => Promise<number>;

export interface Sides {
  floor: Sample;
  subject: Sample;
  turns?: number;
}

/** Like `Sides`, with a value for each of several rows in every turn. */
export interface ManySides {
  floor: () => Promise<number[]>;
  subject: () => Promise<number[]>;
  turns?: number;
}

export interface Row {
  /** The name of the row, unique within its benchmark. */
  name: string;
  unit: string;
  /** Medians over the turns. */
  subject: number;
  floor: number;
  /**
   * The median of subject / floor over the turns (floor / subject for a cost), with the least and the
   * greatest.
   */
  ratio: number;
  least: number;
  greatest: number;
  /** The median of subject - floor over the turns, in the unit. */
  over: number;
  turns: number;
  /** For a cost at several sizes: the curve that the row belongs to, and the size that is its floor. */
  curve?: { name: string; size: number; before: number | null };
}

export interface Benchmark {
  name: string;
  question: string;
  /** `minutes`: the duration of a benchmark that runs until stopped. */
  run(minutes?: number): Promise<Row[]>;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Measures `floor` and `subject` in alternating order. The first turn warms up and does not count. */
export async function compare(name: string, unit: string, sides: Sides): Promise<Row> {
  const pairs = await byTurns(many(sides));
  return rowOf(name, unit, pairs, 0, rateRatio);
}

/** Measures several rates together, in the order of `names`. */
export async function comparisons(names: readonly string[], unit: string, sides: ManySides): Promise<Row[]> {
  const pairs = await byTurns(sides);
  return names.map((name, column) => rowOf(name, unit, pairs, column, rateRatio));
}

/** Measures a cost, such as time or memory: less is better. */
export async function cost(name: string, unit: string, sides: Sides): Promise<Row> {
  const pairs = await byTurns(many(sides));
  return rowOf(name, unit, pairs, 0, costRatio);
}

/** Measures several costs together, in the order of `names`. */
export async function costs(names: readonly string[], unit: string, sides: ManySides): Promise<Row[]> {
  const pairs = await byTurns(sides);
  return names.map((name, column) => rowOf(name, unit, pairs, column, costRatio));
}

/** The cost of one unit at growing sizes; `names` describes the values of a sample. */
export interface Growth {
  names: readonly string[];
  unit: string;
  sizes: readonly number[];
  /** The name of a size in its row. */
  sizeName: (size: string) => string;
  sample: (size: number) => Promise<number[]>;
  turns?: number;
}

/**
 * Measures every size in every turn. The floor of a size is the size before it. A ratio above 1 means that a
 * unit costs less than at the size before, below 1 that it costs more. If the total cost grows with the
 * square of the size, a size ten times as large has a ratio of 0.1.
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

/** Calls `once` repeatedly for `ms`, `inFlight` calls at a time. Returns the calls per second. */
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
