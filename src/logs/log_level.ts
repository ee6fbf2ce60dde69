// The level of a line, and the fields of a JSON line: docs/reference.md "Levels".

import { isJsonDeeper } from '../protocol/json_depth.ts';
import { LOG_LEVELS, type LogLevel } from '../protocol/logs.ts';
import { HTTP } from '../settings/limits.ts';

/** The words of each level. */
const WORDS: Readonly<Record<LogLevel, readonly string[]>> = {
  trace: ['trace', 'trc', 'verbose', 'silly', 'finest', 'finer'],
  debug: ['debug', 'dbg', 'fine'],
  info: ['info', 'inf', 'information', 'informational', 'notice', 'log', 'hint', 'default'],
  warn: ['warn', 'wrn', 'warning'],
  error: ['error', 'err', 'severe'],
  fatal: ['fatal', 'ftl', 'critical', 'crit', 'panic', 'alert', 'emerg', 'emergency'],
};
const LEVEL_OF_WORD: ReadonlyMap<string, LogLevel> = new Map(
  LOG_LEVELS.flatMap((level) => WORDS[level].map((word) => [word, level] as const)),
);
/** Words that mean a level only in a level field. */
const FIELD_WORDS: ReadonlySet<string> = new Set([
  'default',
  'fine',
  'finer',
  'finest',
  'hint',
  'log',
  'silly',
]);
/** Numeric levels of pino and bunyan, in tens. */
const NUMBERED: readonly LogLevel[] = ['trace', 'trace', 'debug', 'info', 'warn', 'error', 'fatal'];
const FIELDS = ['level', 'severity', 'lvl', 'levelname', 'log.level', 'loglevel', 'severity_text'] as const;

const TEXT_WORDS = [...LEVEL_OF_WORD.keys()].filter((word) => !FIELD_WORDS.has(word)).join('|');
const LOGFMT = /(?:^|[\s,])(?:level|lvl|severity|log\.level)=("?)([A-Za-z]+)\1(?=[\s,]|$)/i;
/** The first letter of a level and a date, as glog and klog print them. */
const GLOG = /^([IWEF])\d{4} \d\d:\d\d:/;
const GLOG_LETTERS = 'IWEF';
const GLOG_LEVELS: Readonly<Record<string, LogLevel>> = { I: 'info', W: 'warn', E: 'error', F: 'fatal' };
/** A word in capitals, in brackets, or before a colon. Only the beginning of a line is examined. */
const HEAD_CHARS = 160;
const CAPITALS = new RegExp(`(?<![A-Za-z0-9_.$/=-])(?:${TEXT_WORDS.toUpperCase()})(?![A-Za-z0-9_./=-])`);
const BRACKETED = new RegExp(`[[(<|](${TEXT_WORDS})\\s*[\\])>|]`, 'i');
const BEFORE_COLON = new RegExp(`(?:^|[\\s\\]|)])(${TEXT_WORDS})(?:\\[[^\\]]{0,20}\\])?:(?=\\s|$)`, 'i');
/** How runtimes print an uncaught exception. */
const EXCEPTION =
  /^(?:Uncaught |Unhandled )?(?:[A-Za-z_$][\w$.]*)?(?:Error|Exception)(?: \[[\w.]+\])?(?::|$)/;
const TRACEBACK = /^(?:Traceback \(most recent call last\):|panic: |thread '.*' panicked at )/;

/**
 * The fields of a line that is a JSON object, unless nested too deep for an answer; null for any other line.
 */
export function fieldsOf(text: string): Record<string, unknown> | null {
  const line = text.trim();
  if (!line.startsWith('{') || !line.endsWith('}')) return null;
  const openings = line.match(/[[{]/g)?.length ?? 0;
  if (openings > HTTP.maxJsonDepth && isJsonDeeper(Buffer.from(line), HTTP.maxJsonDepth)) return null;
  try {
    // An object, because it begins as one.
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return null;
  }
}

function levelOfValue(value: unknown): LogLevel | null {
  if (typeof value === 'number') return NUMBERED[Math.floor(Math.min(Math.max(value, 0), 60) / 10)] ?? null;
  return typeof value === 'string' ? (LEVEL_OF_WORD.get(value.toLowerCase()) ?? null) : null;
}

function levelOfFields(fields: Readonly<Record<string, unknown>>): LogLevel | null {
  for (const key of FIELDS) {
    const level = Object.hasOwn(fields, key) ? levelOfValue(fields[key]) : null;
    if (level) return level;
  }
  return null;
}

/** The level of a line without escape sequences and with the given `fields`; null: it names none. */
export function levelOf(text: string, fields: Readonly<Record<string, unknown>> | null): LogLevel | null {
  if (fields) return levelOfFields(fields);
  const logfmt = LOGFMT.exec(text)?.[2];
  const named = logfmt && LEVEL_OF_WORD.get(logfmt.toLowerCase());
  if (named) return named;
  const head = text.slice(0, HEAD_CHARS);
  const glog = GLOG_LEVELS[GLOG.exec(head)?.[1] ?? ''];
  if (glog) return glog;
  if (TRACEBACK.test(head)) return head.startsWith('T') ? 'error' : 'fatal';
  if (EXCEPTION.test(head)) return 'error';
  const word = CAPITALS.exec(head)?.[0] ?? BRACKETED.exec(head)?.[1] ?? BEFORE_COLON.exec(head)?.[1];
  return word === undefined ? null : (LEVEL_OF_WORD.get(word.toLowerCase()) ?? null);
}

/** Whether `level` is at least as severe as `least`. */
export const isAtLeast = (level: LogLevel | null, least: LogLevel): boolean =>
  level !== null && LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(least);

/** The source of an expression that matches, ignoring case, every line with at least the level `least`. */
export function levelPattern(least: LogLevel): string {
  const rank = LOG_LEVELS.indexOf(least);
  const words = LOG_LEVELS.slice(rank).flatMap((level) => WORDS[level]);
  const others = ['exception', 'traceback', 'panic'];
  const all = [...words, ...others];
  const shortest = all.filter((word) => !all.some((other) => other !== word && word.includes(other)));
  const letters = [...GLOG_LETTERS].slice(Math.max(0, rank - 2)).join('');
  return [...new Set(shortest), `"\\s*:\\s*[${rank + 1}-9]\\d`, `[${letters}]\\d{4} \\d\\d:`].join('|');
}
