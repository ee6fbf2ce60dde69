// What a query string may hold: one field per key. Reading and checking is the business of the front, writing
// of the client.

interface QueryFieldBase {
  /** For the API's document. */
  summary: string;
}
interface IntegerField extends QueryFieldBase {
  kind: 'integer';
  /** A value outside is an error; above `most` it counts as `most` when `clamp` is set. */
  least: number;
  most: number;
  clamp?: boolean;
}
interface FlagField extends QueryFieldBase {
  kind: 'flag';
}
interface ListField extends QueryFieldBase {
  kind: 'list';
  /** The words that may stand in it; absent: any. */
  of?: readonly string[];
}
interface WordField extends QueryFieldBase {
  kind: 'word';
  of?: readonly string[];
}
export type QueryField = IntegerField | FlagField | ListField | WordField;
export type QueryShape = Readonly<Record<string, QueryField>>;

/** The value of a field; of a list, that of an item. */
type FieldValue<F> = F extends IntegerField
  ? number
  : F extends FlagField
    ? boolean
    : F extends { of: readonly (infer W)[] }
      ? W
      : string;
/** A query as it is read; null: not given. */
export type QueryValues<S> = {
  readonly [K in keyof S]: (S[K] extends ListField ? FieldValue<S[K]>[] : FieldValue<S[K]>) | null;
};
/** A query as a client gives it; an empty list is as good as none. */
export type QueryInput<S> = {
  readonly [K in keyof S]?:
    | (S[K] extends ListField ? readonly FieldValue<S[K]>[] : FieldValue<S[K]>)
    | null
    | undefined;
};
