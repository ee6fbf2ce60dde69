// docs/reference.md "Registration", "Hooks": what is refused beside the registered services.
import { describe, expect, it } from 'vitest';
import { checkRegistration } from '../../../src/actors/registry/registration_checks.ts';
import { nextRecord } from '../../../src/actors/registry/registration_rules.ts';
import { input } from '../../kit/service_inputs.ts';

const KEY = Buffer.alloc(32, 1);

describe('a registration', () => {
  const hook = nextRecord(input('shop--hook-remove', { stack: 'shop', kind: 'task' }), null, undefined, KEY);
  const known = { services: new Map([['shop--hook-remove', hook]]), registering: new Map() };

  it.each([
    ['web', { dependsOn: ['shop--hook-remove'] }, 'depends on shop--hook-remove'],
    [
      'shop--web',
      { stack: 'shop', dependsOn: [{ name: 'shop--hook-create', condition: 'completed' }] },
      'hook-create',
    ],
    ['shop--hook-remove', { stack: 'shop', group: 'shop' }, 'is a hook, and has no group'],
    ['shop--hook-create', { stack: 'shop', autostart: true }, 'is a hook, and has no group'],
  ] as const)('of %s that would have others start a hook is refused', (name, more, says) => {
    expect(() => checkRegistration(input(name, more as Parameters<typeof input>[1]), known)).toThrow(says);
  });

  it('of a hook itself, or of a service that is only called like one, is accepted', () => {
    checkRegistration(input('shop--hook-remove', { stack: 'shop' }), known);
    checkRegistration(input('hook-remove', { group: 'mine', autostart: true }), known);
    checkRegistration(input('web', { dependsOn: ['hook-remove'] }), known);
  });
});
