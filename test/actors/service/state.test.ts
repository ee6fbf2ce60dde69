import { describe, expect, it } from 'vitest';
import { SUCCESSORS } from '../../../src/actors/service/state.ts';

describe('the phases of a service', () => {
  it('each lead to others', () => {
    for (const phases of Object.values(SUCCESSORS)) expect(phases.length).toBeGreaterThan(0);
  });

  it('start a process only if there is none', () => {
    const mayLaunch = Object.entries(SUCCESSORS).filter(([, phases]) => phases.includes('launching'));
    expect(mayLaunch.map(([phase]) => phase)).toEqual(['idle', 'waiting']);
  });
});
