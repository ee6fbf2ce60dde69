// Which rule of a changed configuration is which earlier one: docs/reference.md "Notices".
import { createHash, randomBytes } from 'node:crypto';
import type { StoredRule } from '../../protocol/notices.ts';
import type { NoticeRule, NoticeTarget } from '../../settings/notify.ts';

/** Hashes, because the address of a webhook or a topic is as secret as its key. */
const hashOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 12);

/** Where a target is, without the key that it takes. */
function addressOf(target: NoticeTarget): readonly string[] {
  if ('url' in target) return [target.kind, target.url];
  return target.kind === 'exec' ? [target.kind, target.command] : [target.kind];
}

/** A later test only concerns the rules that the earlier ones leave. */
const TESTS: readonly ((one: StoredRule, other: StoredRule) => boolean)[] = [
  (one, other) => one.when === other.when && one.address === other.address,
  (one, other) => one.when === other.when,
  (one, other) => one.address === other.address,
];

/** Gives each of the distinct `rules` the id of the earlier rule that it is a version of, or a new one. */
export function recognize(
  earlier: readonly StoredRule[],
  rules: readonly NoticeRule[],
): (StoredRule & { rule: NoticeRule })[] {
  const found = rules.map((rule) => {
    const { types, names, forMs, target } = rule;
    return { id: '', when: hashOf([types, names, forMs]), address: hashOf(addressOf(target)), rule };
  });
  const left = new Set(earlier);
  for (const isSame of TESTS)
    for (const one of found.filter(({ id }) => id === '')) {
      const other = [...left].find((candidate) => isSame(candidate, one));
      if (!other) continue;
      left.delete(other);
      one.id = other.id;
    }
  // Versions that stored no rules stored notices under a hash of the whole rule.
  const newId = (rule: NoticeRule): string =>
    earlier.length === 0 ? hashOf(rule) : randomBytes(6).toString('hex');
  return found.map((one) => ({ ...one, id: one.id || newId(one.rule) }));
}
