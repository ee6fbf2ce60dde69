// Which rule of a changed configuration continues which earlier one: docs/reference.md "Notices".
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { recognize } from '../../../src/actors/notices/rule_identity.ts';
import type { NoticeRule } from '../../../src/settings/notify.ts';
import { must } from '../../kit/must.ts';

const rule = (type: string, path: string, secret = 's'): NoticeRule => ({
  ...{ types: [type], names: ['*'], forMs: 0 },
  target: { kind: 'webhook', url: `https://example.com/${path}`, secret },
});

/** For each of `rules`, the place of the one of `earlier` that it continues; -1: none. */
function continued(earlier: readonly NoticeRule[], rules: readonly NoticeRule[]): number[] {
  const known = recognize([], earlier).map(({ rule: _, ...stored }) => stored);
  return recognize(known, rules).map(({ id }) => known.findIndex((one) => one.id === id));
}

const [a, b] = [rule('service.crashed', 'a'), rule('service.stopped', 'b')];

it.each<[what: string, earlier: NoticeRule[], rules: NoticeRule[], expected: number[]]>([
  ['another order', [a, b], [b, a], [1, 0]],
  ['another secret', [a, b], [rule('service.crashed', 'a', 't'), b], [0, 1]],
  ['another URL', [a, b], [rule('service.crashed', 'c'), b], [0, 1]],
  ['other types', [a, b], [a, rule('service.*', 'b')], [0, 1]],
  ['a rule in place of another', [a, b], [rule('service.ready', 'c'), b], [-1, 1]],
  ['a rule before the others', [a, b], [rule('service.crashed', 'c'), a, b], [-1, 0, 1]],
  [
    'a correction after a removal',
    [a, rule('service.crashed', 'c')],
    [rule('service.crashed', 'c', 't')],
    [1],
  ],
  ['two corrections', [a, rule('service.crashed', 'c')], [rule('service.crashed', 'd'), a], [1, 0]],
])('%s', (_, earlier, rules, expected) => expect(continued(earlier, rules)).toEqual(expected));

it('a notice that an earlier version has stored belongs to the rule of which it has the hash', () => {
  const hash = createHash('sha256').update(JSON.stringify(a)).digest('hex').slice(0, 12);
  const [first] = recognize([], [a]);
  expect(first?.id).toBe(hash);
  const [changed, again] = recognize([{ ...must(first) }], [rule('service.crashed', 'c'), a]);
  expect([changed?.id, again?.id].filter((id) => id === hash)).toHaveLength(1);
});

it('a stored rule contains no URL, command or key', () => {
  const exec: NoticeRule = { ...b, target: { kind: 'exec', command: 'secret-command' } };
  const stored = recognize([], [rule('service.crashed', 'secret-path', 'secret-key'), exec]);
  expect(JSON.stringify(stored.map(({ rule: _, ...one }) => one))).not.toContain('secret');
});
