// docs/reference.md "Label selectors".
import { describe, expect, it } from 'vitest';
import { labelsIn, labelText, parseSelector } from '../../src/protocol/labels.ts';
import { isFailure } from '../../src/runtime/actor.ts';

const WEB = { app: 'web', 'app.kubernetes.io/name': 'shop', tier: 'front', empty: '' };

describe('labels as text', () => {
  it('convert back to the same labels', () => {
    expect(labelsIn(labelText(WEB))).toEqual(WEB);
    expect(labelText({})).toBe('');
    expect(labelsIn('')).toEqual({});
  });

  it('leave out what cannot be a Kubernetes label', () => {
    const hostile = {
      app: 'web',
      'a\nb': 'c',
      'x=y': 'z',
      one: 'two\nthree=four',
      n: 3,
      long: 'v'.repeat(64),
    };
    expect(labelsIn(labelText(hostile))).toEqual({ app: 'web' });
    expect([labelText(null), labelText('app=web'), labelText(7)]).toEqual(['', '', '']);
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`key-${index}`, 'value']));
    expect(labelText(many).length).toBeLessThan(5_000);
  });
});

describe('a label selector', () => {
  it.each([
    ['app=web', true],
    ['app==web', true],
    ['app = web , tier = front', true],
    ['app=web,tier=back', false],
    ['app=we', false],
    ['pp=web', false],
    ['name=shop', false],
    ['app.kubernetes.io/name=shop', true],
    ['empty=', true],
    ['app=', false],
    ['app!=db', true],
    ['app!=web', false],
    ['absent!=anything', true],
    ['tier in (front,back)', true],
    ['tier in ( back , middle )', false],
    ['tier notin (back,middle)', true],
    ['tier notin (front)', false],
    ['absent notin (front)', true],
    ['absent in (front)', false],
    ['empty in (front,)', true],
    ['app', true],
    ['ap', false],
    ['!absent', true],
    ['! app', false],
    ['app,!absent,tier in (front),empty!=x', true],
  ])('%s matches: %s', (selector, isSelected) => {
    expect(parseSelector(selector)(labelText(WEB))).toBe(isSelected);
  });

  it('matches workloads without labels only if it asks for absence', () => {
    expect(['app', 'app=web', '!app', 'app!=web'].map((one) => parseSelector(one)(''))).toEqual([
      ...[false, false, true, true],
    ]);
  });

  it.each([
    ['', 'has an invalid requirement: ""'],
    ['app=web,', 'has an invalid requirement: ""'],
    ['a=b=c', 'has an invalid requirement: "a=b=c"'],
    ['tier in front', 'has an invalid requirement: "tier in front"'],
    ['tier in (front', 'has an invalid requirement: "tier in (front"'],
    ['tier of (front)', 'has an invalid requirement: "tier of (front)"'],
    ['-app=web', 'has an invalid key: "-app"'],
    ['app=we$b', 'has an invalid value: "we$b"'],
    ['app in ()', 'has no values for "app"'],
    ['app=web,tier notin ( )', 'has no values for "tier"'],
    ['app in (a,b$)', 'has an invalid value: "b$"'],
    [`app=${'a'.repeat(1_024)}`, 'must have at most 1024 characters'],
    [Array(33).fill('a=b').join(','), 'must have at most 32 requirements'],
  ])('%j is refused', (selector, message) => {
    let refusal: unknown;
    try {
      parseSelector(selector);
    } catch (error) {
      refusal = error;
    }
    expect(isFailure(refusal) && [refusal.code, refusal.message]).toEqual([
      ...['invalid_spec', `selector ${message}`],
    ]);
  });
});
