import { describe, expect, it } from 'vitest';
import { percentDecode, readQuery } from '../../../src/front/api/query.ts';
import { isFailure } from '../../../src/runtime/actor.ts';

const SHAPE = {
  timeout: { kind: 'integer', least: 0, most: 3_600_000, summary: '' },
  lines: { kind: 'integer', least: 1, most: 1000, clamp: true, summary: '' },
  wait: { kind: 'flag', summary: '' },
  types: { kind: 'list', of: ['a', 'b'], summary: '' },
  names: { kind: 'list', summary: '' },
  stream: { kind: 'word', of: ['stdout', 'stderr'], summary: '' },
  id: { kind: 'word', summary: '' },
} as const;
const NOTHING = { timeout: null, lines: null, wait: null, types: null, names: null, stream: null, id: null };

describe('valid values', () => {
  it.each([
    ['', {}],
    ['timeout=0', { timeout: 0 }],
    ['timeout=3600000', { timeout: 3_600_000 }],
    ['lines=1', { lines: 1 }],
    ['lines=1000', { lines: 1000 }],
    ['lines=1001', { lines: 1000 }],
    ['lines=99999999999999999999999999', { lines: 1000 }],
    ['wait=true', { wait: true }],
    ['wait=false', { wait: false }],
    ['types=a', { types: ['a'] }],
    ['types=a,b,', { types: ['a', 'b'] }],
    ['names=web,db', { names: ['web', 'db'] }],
    ['names=we%62', { names: ['web'] }],
    ['%74imeout=5', { timeout: 5 }],
    ['stream=stderr', { stream: 'stderr' }],
    ['id=', { id: '' }],
    ['id', { id: '' }],
    ['id=a=b', { id: 'a=b' }],
    ['id=a+b%2B', { id: 'a b+' }],
    ['&&timeout=5&&', { timeout: 5 }],
  ])('%s', (raw, expected) => expect(readQuery(raw, SHAPE)).toEqual({ ...NOTHING, ...expected }));
});

const wrong = (raw: string): { message: string; paths: string[] } => {
  try {
    readQuery(raw, SHAPE);
  } catch (error) {
    if (isFailure(error) && error.code === 'invalid_spec') {
      const { details = [] } = error.detail as { details?: { path: string }[] };
      return { message: error.message, paths: details.map(({ path }) => path) };
    }
  }
  throw new Error(`${raw} was taken`);
};

describe('wrong values', () => {
  it.each([
    'timeout=',
    'timeout',
    'timeout=-1',
    'timeout=-0',
    'timeout=+1',
    'timeout=1.5',
    'timeout=1e3',
    'timeout=0x10',
    'timeout=007',
    'timeout=%201',
    'timeout=1+',
    'timeout=abc',
    'timeout=NaN',
    'timeout=Infinity',
    'timeout=3600001',
    'timeout=١',
    'timeout=99999999999999999999',
    'timeout=1&timeout=1',
    'timeout=1&timeout=2',
    'timeout=1&%74imeout=1',
  ])('%s', (raw) => expect(wrong(raw).paths).toEqual(['timeout']));

  it.each([
    ['lines=0', 'lines'],
    ['lines=-5', 'lines'],
    ['lines=x', 'lines'],
    ['wait=1', 'wait'],
    ['wait=', 'wait'],
    ['wait=TRUE', 'wait'],
    ['types=', 'types'],
    ['types=,', 'types'],
    ['types=a,c', 'types'],
    ['stream=both', 'stream'],
    ['names=a&names=b', 'names'],
  ])('%s', (raw, path) => expect(wrong(raw).paths).toEqual([path]));

  it.each([
    ['dryRun=All', ['dryRun']],
    ['dry_run', ['dry_run']],
    ['Timeout=5&timeout=6', ['Timeout']],
    ['other=1&other=2&timeout=x', ['other', 'timeout']],
    ['__proto__=1&constructor=2&toString', ['__proto__', 'constructor', 'toString']],
    ['=5', ['']],
  ])('%s names unknown parameters', (raw, paths) => expect(wrong(raw).paths).toEqual(paths));

  it('name unknown values, at most 32 of them', () => {
    expect(wrong('dryRun=All').message).toBe('dryRun is not a query value of this request');
    const many = Array.from({ length: 5_000 }, (_, index) => `x${index}`).join('&');
    expect(wrong(many).paths).toHaveLength(32);
  });

  it('are all reported at once, each with its rule', () => {
    const { message, paths } = wrong('timeout=x&lines=0&wait=maybe&types=z');
    expect(paths).toEqual(['timeout', 'lines', 'wait', 'types']);
    expect(message).toContain('timeout must be an integer from 0 to 3600000');
    expect(message).toContain('lines must be an integer of at least 1');
    expect(message).toContain('wait must be true or false');
    expect(message).toContain('a, b');
  });

  it.each(['timeout=%', 'timeout=%zz', '%=1', 'x=%e0%a4%a', 'x=%ff'])('%s has broken encoding', (raw) =>
    expect(wrong(raw).message).toContain('percent-encoding'),
  );
});

it.each([
  ['web', 'web'],
  ['%77eb', 'web'],
  ['a%2Fb', 'a/b'],
  ['%', null],
  ['%2', null],
  ['%zz', null],
  ['%ff', null],
  ['%c3%28', null],
  ['%ed%a0%80', null],
])('%s decodes to %s', (text, expected) => expect(percentDecode(text)).toBe(expected));
