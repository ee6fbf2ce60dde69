// `[[notify]]` in the configuration: docs/reference.md "Notices". No message contains its values: the address
// of a webhook or a topic is as secret as its key.

/** Where notices go. */
export type NoticeTarget =
  | { readonly kind: 'webhook'; readonly url: string; readonly secret: string }
  /** `token` empty: no token is needed. */
  | { readonly kind: 'ntfy'; readonly url: string; readonly token: string }
  | { readonly kind: 'exec'; readonly command: string }
  | { readonly kind: 'desktop' };

/** Which notices are sent, and where. */
export interface NoticeRule {
  /** Event types; `*` matches any text. */
  readonly types: readonly string[];
  /** Names of services, agents and clusters, with the same wildcard. */
  readonly names: readonly string[];
  /** How long nothing else may happen to the subject before the notice is sent, in milliseconds. */
  readonly forMs: number;
  readonly target: NoticeTarget;
}

const MAX_RULES = 32;
const MAX_PATTERNS = 100;
const MAX_FOR_SECONDS = 86_400;

type Table = Readonly<Record<string, unknown>>;
const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= 4096 && !/[\0-\x1f\x7f]/.test(value);
const isPrintable = (value: unknown): value is string => isText(value) && /^[!-~]+$/.test(value);

function isWebUrl(value: unknown): value is string {
  if (!isPrintable(value) || !URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return /^https?:$/.test(protocol) && username === '' && password === '';
}

const isTopicUrl = (value: unknown): value is string =>
  isWebUrl(value) && /^\/[A-Za-z0-9_-]{1,64}$/.test(new URL(value).pathname);

const isPatterns = (value: unknown): value is string[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.length <= MAX_PATTERNS &&
  value.every((one) => typeof one === 'string' && /^[A-Za-z0-9_.*-]{1,200}$/.test(one));

/** Reads a table. Throws the first fault, as text to follow the key of the table. */
class Reader {
  private readonly table: Table;
  private readonly path: string;

  constructor(value: unknown, path: string) {
    if (!isTable(value)) throw new Error(`${path} must be a table`);
    this.table = value;
    this.path = path;
  }

  get keys(): string[] {
    return Object.keys(this.table);
  }

  allow(...names: string[]): void {
    const other = this.keys.find((key) => !names.includes(key));
    if (other !== undefined) throw new Error(`${this.path} has an unknown key ${JSON.stringify(other)}`);
  }

  read<T>(key: string, fits: (value: unknown) => value is T, what: string, fallback?: T): T {
    const value = this.table[key];
    if (value === undefined && fallback !== undefined) return fallback;
    if (fits(value)) return value;
    const problem = value === undefined ? 'is missing; it must be' : 'must be';
    throw new Error(`${this.path}.${key} ${problem} ${what}`);
  }

  inner(key: string): Reader {
    return new Reader(this.table[key], `${this.path}.${key}`);
  }
}

const TARGETS: Readonly<Record<NoticeTarget['kind'], (to: Reader) => NoticeTarget>> = {
  webhook: (to) => {
    to.allow('webhook', 'secret');
    const url = to.read('webhook', isWebUrl, 'a URL of http or https without a password');
    return { kind: 'webhook', url, secret: to.read('secret', isPrintable, 'printable ASCII without spaces') };
  },
  ntfy: (to) => {
    to.allow('ntfy', 'token');
    const url = to.read('ntfy', isTopicUrl, 'the URL of a topic, such as https://ntfy.sh/<topic>');
    const isToken = (value: unknown): value is string => value === '' || isPrintable(value);
    return { kind: 'ntfy', url, token: to.read('token', isToken, 'printable ASCII without spaces', '') };
  },
  exec: (to) => {
    to.allow('exec');
    return { kind: 'exec', command: to.read('exec', isText, 'a command of one line') };
  },
  desktop: (to) => {
    to.allow('desktop');
    to.read('desktop', (value): value is true => value === true, 'true');
    return { kind: 'desktop' };
  },
};
const TARGET_KINDS = Object.keys(TARGETS) as NoticeTarget['kind'][];

function readTarget(to: Reader, path: string): NoticeTarget {
  const kinds = TARGET_KINDS.filter((kind) => to.keys.includes(kind));
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1)
    throw new Error(`${path}.to must have one of ${TARGET_KINDS.join(', ')}`);
  return TARGETS[kind](to);
}

const isSeconds = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value <= MAX_FOR_SECONDS;

function readRule(value: unknown, path: string): NoticeRule {
  const rule = new Reader(value, path);
  rule.allow('when', 'to');
  const when = rule.inner('when');
  when.allow('types', 'names', 'for');
  const patterns = `a list of up to ${MAX_PATTERNS} patterns of letters, digits, . _ - and *`;
  return {
    types: when.read('types', isPatterns, patterns),
    names: when.read('names', isPatterns, patterns, ['*']),
    forMs: 1000 * when.read('for', isSeconds, `seconds up to ${MAX_FOR_SECONDS}`, 0),
    target: readTarget(rule.inner('to'), path),
  };
}

/** The rules in the value of `notify`. Throws an Error whose message has no value. */
export function readNoticeRules(value: unknown): NoticeRule[] {
  if (!Array.isArray(value) || value.length > MAX_RULES)
    throw new Error(`notify must be up to ${MAX_RULES} tables [[notify]]`);
  return value.map((rule, index) => readRule(rule, `notify[${index}]`));
}

/** A target as people may see it, without its secret parts. */
export function targetLabel(target: NoticeTarget): string {
  return 'url' in target ? `${target.kind} ${new URL(target.url).host}` : target.kind;
}

/** Whether `text` matches `pattern`, in which `*` is any text. Takes linear time in both. */
export function matchesPattern(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}
