// Registrations for tests, as received and as stored.
import type { ServiceInput, ServiceSpec } from '../../src/protocol/service.ts';

export const input = (name: string, more: Partial<ServiceInput> = {}): ServiceInput => ({
  name,
  port: 8000,
  cmd: 'true',
  cwd: '/',
  group: null,
  ready: null,
  env: null,
  dependsOn: [],
  restart: 'no',
  autostart: false,
  stopSignal: 'SIGTERM',
  stopGrace: 5_000,
  startTimeout: 30_000,
  labels: [],
  agent: null,
  stack: null,
  watch: null,
  kind: 'service',
  inputs: [],
  sleep: null,
  live: null,
  limits: null,
  envFile: [],
  stop: null,
  schedule: null,
  protocol: 'http',
  ...more,
});

export const agentInput = (name: string, more: Partial<ServiceInput> = {}): ServiceInput =>
  input(name, {
    group: 'Agents',
    port: 0,
    agent: {
      agentType: null,
      hostname: `${name.replaceAll('_', '-')}.test`,
      cols: 80,
      rows: 24,
    },
    ...more,
  });

/** The stored form: env is never null. */
export const spec = (more: Partial<ServiceSpec> = {}): ServiceSpec => ({
  ...input('web', { port: 3000, cmd: 'serve' }),
  env: [],
  ...more,
});
