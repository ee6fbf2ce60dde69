import { describe, expect, it } from 'vitest';
import { canonicalSpec, nextRecord, specRow } from '../../../src/actors/registry/registration_rules.ts';
import { SPEC_FIELD_NAMES, SPEC_FIELDS } from '../../../src/protocol/registration.ts';
import { agentInput, input } from '../../kit/service_inputs.ts';

const KEY = Buffer.alloc(32, 1);

describe('a record', () => {
  const first = nextRecord(input('web', { env: [['A', '1']] }), 8000, undefined, KEY);

  it('begins at revision 1 and increases only when the effective spec changes', () => {
    expect(first.revision).toBe(1);
    expect(nextRecord(input('web', { env: [['A', '1']] }), 8000, first, KEY)).toBe(first);
    expect(nextRecord(input('web'), 8000, first, KEY)).toBe(first);
    expect(nextRecord(input('web', { env: [] }), 8000, first, KEY)).toMatchObject({
      revision: 2,
      spec: { env: [] },
    });
    expect(nextRecord(input('web'), 8001, first, KEY)).toMatchObject({ revision: 2, spec: { port: 8001 } });
  });

  it('keeps an env that could not be decrypted until another one is given', () => {
    const sealed = {
      ...first,
      spec: { ...first.spec, env: [['A', '']] as [string, string][] },
      sealedEnv: 'x',
    };
    expect(nextRecord(input('web'), 8000, sealed, KEY)).toBe(sealed);
    expect(nextRecord(input('web', { cmd: 'other' }), 8000, sealed, KEY)).toMatchObject({ sealedEnv: 'x' });
    for (const env of [[], [['A', '']]] as [string, string][][])
      expect(nextRecord(input('web', { cmd: 'other', env }), 8000, sealed, KEY)).not.toHaveProperty(
        'sealedEnv',
      );
  });

  it('keeps its base environment until another one, or none, is given', () => {
    const baseEnv: [string, string][] = [
      ['PATH', '/venv/bin'],
      ['SHLVL', '2'],
      ['AWS_PROFILE', 'dev'],
    ];
    const based = nextRecord(input('web', { baseEnv }), 8000, undefined, KEY);
    expect(based.baseEnv?.rows).toEqual([
      ['AWS_PROFILE', 'dev'],
      ['PATH', '/venv/bin'],
    ]);
    expect(based.spec).not.toHaveProperty('baseEnv');
    expect(nextRecord(input('web'), 8000, based, KEY)).toBe(based);
    expect(nextRecord(input('web', { baseEnv: baseEnv.toReversed() }), 8000, based, KEY)).toBe(based);
    const other = nextRecord(input('web', { baseEnv: [['PATH', '/bin']] }), 8000, based, KEY);
    // A process of the earlier one is stale, and a comparison of the specs finds no difference.
    expect([other.revision, other.hash]).toEqual([2, based.hash]);
    expect(nextRecord(input('web', { baseEnv: null }), 8000, based, KEY)).not.toHaveProperty('baseEnv');
    expect(JSON.stringify(specRow(based, KEY))).not.toContain('venv');
    // Sealed with a key that may be lost: what is given takes its place.
    const sealed = { ...based, baseEnv: { hash: based.baseEnv?.hash ?? '', sealed: 'x' } };
    expect(nextRecord(input('web', { baseEnv }), 8000, sealed, KEY)).toEqual(based);
    expect(nextRecord(input('web', { cmd: 'other' }), 8000, sealed, KEY).baseEnv?.sealed).toBe('x');
  });

  it('changes with every field but not with the order of env', () => {
    const changes: Parameters<typeof input>[1][] = [
      { cmd: 'false' },
      { cwd: '/tmp' },
      { group: 'g' },
      { ready: 'http://localhost' },
      { env: [['A', '2']] },
      { dependsOn: ['db'] },
      { restart: 'always' },
      { autostart: true },
      { stopSignal: 'SIGINT' },
      { stopGrace: 1 },
      { startTimeout: 1 },
      { labels: ['x'] },
      { agent: { agentType: null, hostname: 'web.test', cols: 80, rows: 24 } },
      { watch: { paths: ['src'], ignore: [], debounceMs: 300, action: 'restart', cascade: false } },
    ];
    const texts = [undefined, ...changes].map((more) =>
      canonicalSpec(nextRecord(input('web', more), 8000, undefined, KEY).spec),
    );
    expect(new Set(texts).size).toBe(texts.length);
    const env: [string, string][] = [
      ['B', '2'],
      ['A', '1'],
    ];
    const spec = { ...first.spec, env };
    expect(canonicalSpec({ ...spec, env: env.toReversed() })).toBe(canonicalSpec(spec));
  });

  it('that was stored before a field existed gets its default', () => {
    const whole = nextRecord(input('web', { env: [] }), 8000, undefined, KEY);
    for (const field of SPEC_FIELD_NAMES) {
      if (SPEC_FIELDS[field].default === undefined || ['env', 'port'].includes(field)) continue;
      const { [field]: _, ...spec } = whole.spec;
      const before = { ...whole, spec: spec as typeof whole.spec };
      expect(nextRecord(input('web', { env: [] }), 8000, before, KEY), field).toBe(before);
    }
  });

  it('keeps the hash stored by an earlier version', () => {
    const stored = nextRecord(
      {
        name: 'web',
        port: 0,
        cmd: 'serve',
        cwd: '/srv',
        group: 'g',
        ready: 'http://localhost:$PORT/',
        env: [
          ['B', '2'],
          ['A', '1'],
        ],
        dependsOn: ['db', 'cache'],
        restart: 'always',
        autostart: true,
        stopSignal: 'SIGINT',
        stopGrace: 1_000,
        startTimeout: 2_000,
        labels: ['x', 'y'],
        agent: { agentType: 'vllm', hostname: 'web.test', cols: 80, rows: 24 },
        sleep: null,
        stack: null,
        watch: null,
        kind: 'service',
        inputs: [],
        live: null,
        limits: null,
        envFile: [],
        stop: null,
        schedule: null,
        protocol: 'http',
      },
      8105,
      undefined,
      KEY,
    );
    expect(stored.hash).toBe('2ce8654185cc4ca182b7c69cb5575a2d9ee954ad692d35427468238ac7478aaa');
  });

  it('of an agent has its port in the ready URL', () => {
    const ready = 'http://127.0.0.1:$PORT/ok';
    expect(nextRecord(agentInput('a', { ready }), 8105, undefined, KEY).spec.ready).toBe(
      'http://127.0.0.1:8105/ok',
    );
    expect(nextRecord(input('a', { ready }), 8105, undefined, KEY).spec.ready).toBe(ready);
  });

  it('shows no value of env, and a hash that depends on the key', () => {
    const row = specRow(first, KEY);
    expect(row).not.toHaveProperty('env');
    expect(row).toMatchObject({
      envKeys: ['A'],
      revision: 1,
      specHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const elsewhere = nextRecord(input('web', { env: [['A', '1']] }), 8000, undefined, Buffer.alloc(32, 2));
    expect({ ...elsewhere, hash: '' }).toEqual({ ...first, hash: '' });
    expect(specRow(elsewhere, KEY).specHash).not.toBe(row.specHash);
    // As an earlier version wrote it.
    const { hash, ...old } = first;
    expect(specRow(old, KEY)).toEqual(row);
    const other = nextRecord(input('web', { env: [['A', '2']] }), 8000, undefined, KEY);
    expect(specRow(other, KEY).specHash).not.toBe(row.specHash);
  });
});
