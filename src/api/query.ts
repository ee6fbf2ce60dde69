// The fields of a query string, one per key. The front parses and validates them; the client writes them.

interface QueryFieldBase {
  /** For the API's document. */
  summary: string;
}
interface IntegerField extends QueryFieldBase {
  kind: 'integer';
  /** A value out of range is an error; with `clamp`, a value above `most` counts as `most`. */
  least: number;
  most: number;
  clamp?: boolean;
}
interface FlagField extends QueryFieldBase {
  kind: 'flag';
}
interface ListField extends QueryFieldBase {
  kind: 'list';
  /** The allowed words; absent: any. */
  of?: readonly string[];
}
interface WordField extends QueryFieldBase {
  kind: 'word';
  of?: readonly string[];
}
export type QueryField = IntegerField | FlagField | ListField | WordField;
export type QueryShape = Readonly<Record<string, QueryField>>;

/** The value of a field; for a list, the value of an item. */
type FieldValue<F> = F extends IntegerField
  ? number
  : F extends FlagField
    ? boolean
    : F extends { of: readonly (infer W)[] }
      ? W
      : string;
/** A parsed query; null: the field is absent. */
export type QueryValues<S> = {
  readonly [K in keyof S]: (S[K] extends ListField ? FieldValue<S[K]>[] : FieldValue<S[K]>) | null;
};
/** A query as a client gives it; an empty list counts as absent. */
export type QueryInput<S> = {
  readonly [K in keyof S]?:
    | (S[K] extends ListField ? readonly FieldValue<S[K]>[] : FieldValue<S[K]>)
    | null
    | undefined;
};
