// Sections of services, and which group a section is.
import { expect, it } from 'vitest';
import type { Service } from '../../src/client/records.ts';
import { sectionsOf } from '../../src/presentation/sections.ts';
import { serviceOf } from '../cli/ui/models.ts';

const groupsOf = (services: readonly Service[], words: readonly string[] = []): (string | null)[][] =>
  sectionsOf(services, words, ({ status }) => status).map(({ title, group }) => [title, group]);

const inStack = (stack: string, service: string, group: string | null): Service =>
  serviceOf(`${stack}--${service}`, { stack, service, group });

it('a section has a group where the group is exactly its services, hooks aside', () => {
  const services = [
    inStack('one', 'web', 'one'),
    inStack('one', 'db', 'one'),
    inStack('one', 'hook-create', null),
    inStack('mixed', 'web', 'mixed'),
    inStack('mixed', 'db', 'mixed--data'),
    serviceOf('api', { group: 'site' }),
    serviceOf('alone'),
  ];
  const whole = [
    ['Without a group', null],
    ['mixed', null],
    ['one', 'one'],
    ['site', 'site'],
  ];
  expect(groupsOf(services)).toEqual(whole);
  // One that is in no stack, or in another one, would take part in what is done to the group.
  expect(groupsOf([...services, inStack('two', 'web', 'one'), inStack('two', 'api', 'site')])).toEqual([
    ['Without a group', null],
    ['mixed', null],
    ['one', null],
    ['site', null],
    ['two', null],
  ]);
});

it('a section of which a search hides some has no group', () => {
  const services = [inStack('one', 'web', 'one'), inStack('one', 'db', 'one')];
  expect(groupsOf(services, ['one'])).toEqual([['one', 'one']]);
  expect(groupsOf(services, ['web'])).toEqual([['one', null]]);
});

it('sections of agents have no group, as theirs is that of all agents', () => {
  const bot = serviceOf('bot', { group: 'Agents' });
  expect(groupsOf([bot])).toEqual([['Agents', null]]);
  expect(groupsOf([bot, inStack('one', 'bot', 'Agents')])).toEqual([
    ['Agents', null],
    ['one agents', null],
  ]);
});
