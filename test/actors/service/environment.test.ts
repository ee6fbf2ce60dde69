import { describe, expect, it } from 'vitest';
import { childEnvironment, inheritedEnvironment } from '../../../src/actors/service/environment.ts';
import { AGENT } from '../../kit/service.ts';
import { spec } from '../../kit/service_inputs.ts';

describe('the environment of a child', () => {
  it("is the daemon's, without variables of Berth, npm or a service manager", () => {
    const env = {
      PATH: '/bin',
      BERTH_AUTH_TOKEN: 'secret',
      npm_config_x: '1',
      INIT_CWD: '/x',
      NODE_CHANNEL_FD: '3',
      NODE_CHANNEL_SERIALIZATION_MODE: 'json',
      NOTIFY_SOCKET: '/s',
      LISTEN_FDS: '1',
      NODE_OPTIONS: '--x',
      NPM_TOKEN: 'kept',
      GONE: undefined,
    };
    expect(inheritedEnvironment(env)).toEqual([
      ['PATH', '/bin'],
      ['NODE_OPTIONS', '--x'],
      ['NPM_TOKEN', 'kept'],
    ]);
  });

  it('has no PORT of its own for a service without a port', () => {
    expect(childEnvironment([['PORT', '1']], spec({ port: null }), 'r1')).toContainEqual(['PORT', '1']);
    expect(childEnvironment([], spec({ port: null }), 'r1').map(([key]) => key)).not.toContain('PORT');
  });

  it('has PORT before env, and BERTH_SERVICE and BERTH_RUN that nothing overrides', () => {
    const own: [string, string][] = [
      ['PORT', '9'],
      ['PATH', '/own'],
      ['BERTH_RUN', 'x'],
    ];
    expect(childEnvironment([['PATH', '/bin']], spec({ env: own }), 'r1')).toEqual([
      ['PATH', '/own'],
      ['PORT', '9'],
      ['BERTH_RUN', 'r1'],
      ['BERTH_SERVICE', 'web'],
    ]);
  });

  it('tells an agent that another agent has started in its shell that it is not nested', () => {
    const base: [string, string][] = [
      ['CODEX_THREAD_ID', 'outer'],
      ['GEMINI_CLI', '1'],
    ];
    const keysFor = (changes: object) => childEnvironment(base, spec(changes), 'r1').map(([key]) => key);
    expect(keysFor({ agent: AGENT }).join()).not.toMatch(/CODEX|GEMINI/);
    expect(keysFor({ agent: null })).toEqual(expect.arrayContaining(['CODEX_THREAD_ID', 'GEMINI_CLI']));
  });

  it('lets an agent have its own TERM', () => {
    const env: [string, string][] = [['TERM', 'dumb']];
    const rows = new Map(childEnvironment([['TERM', 'linux']], spec({ agent: AGENT, env }), 'r1'));
    expect([rows.get('TERM'), rows.get('HOST'), rows.get('PYTHONUNBUFFERED')]).toEqual([
      'dumb',
      '127.0.0.1',
      '1',
    ]);
  });
});
