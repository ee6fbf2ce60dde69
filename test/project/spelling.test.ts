import { expect, it } from 'vitest';
import { nearestWord } from '../../src/project/spelling.ts';

it.each([
  ['prot', 'port'],
  ['stat', 'start'],
  ['strat', 'start'],
  ['PORT', 'port'],
  ['stopp', 'stop'],
  ['xyz', undefined],
  ['p', undefined],
])('the nearest word to %s is %s', (word, found) => {
  expect(nearestWord(word, ['start', 'stop', 'port', 'depends_on'])).toBe(found);
});
