// Tools for services.
import { z } from '../../adapters/zod.ts';
import {
  Explanation,
  Resolution,
  type Service,
  ServiceDetail,
  ServiceList,
  StartResult,
  StopResult,
} from '../../api/services_shapes.ts';
import { PORT_PROTOCOLS, shownAddress } from '../../protocol/port_protocol.ts';
import { pickFields } from '../../protocol/registration.ts';
import { SERVICE_STATUSES } from '../../protocol/service.ts';
import { durationMs, linesOf, nameField, seconds, stackField } from '../fields.ts';
import { defineTool, inputShape, type ToolCall } from '../tool.ts';

const serviceLine = (service: Pick<Service, 'name' | 'status' | 'url' | 'protocol'>): string =>
  [service.name, service.status, shownAddress(service)].filter(Boolean).join('  ');

/** What a start waits for, as a sentence. */
export async function waitingFor({ client, signal }: ToolCall, name: string): Promise<string> {
  const { status, waitingFor: awaited } = await client.explain(name, { signal });
  return awaited === null ? `${name} is ${status}` : `${name} waits for ${awaited}`;
}

const timeout = durationMs('How long to wait until it is ready; default: its own, usually 30 s');

const startedText = ({ name, status, pid, ms, unchanged }: z.infer<typeof StartResult>): string => {
  if (unchanged) return `${name} was not run: it has completed with the same content before.`;
  if (status === 'completed') return `${name} has completed${ms === undefined ? '' : ` in ${seconds(ms)}`}.`;
  return `${name} is ${status}${pid === null ? '' : `, pid ${pid}`}.`;
};

const list = defineTool({
  name: 'list',
  title: 'List services',
  description:
    'Every registered service with its status, URL, port, pid, CPU and memory. Start here. A service is a ' +
    'command that Berth runs and watches; use these tools instead of starting servers in a shell with &.',
  effect: 'reads',
  isRepeatable: true,
  operations: ['listServices'],
  input: inputShape({
    stack: stackField,
    status: z.enum(SERVICE_STATUSES).optional().describe('Only those with this status'),
  }),
  output: ServiceList,
  run: async ({ client, signal }, { stack, status }) => ({
    services: (await client.services({ signal })).filter(
      (one) =>
        (stack === undefined || one.stack === stack) && (status === undefined || one.status === status),
    ),
  }),
  text: ({ services }) => linesOf(services, serviceLine, 'There is no such service. `register` makes one.'),
});

const get = defineTool({
  name: 'get',
  title: 'Read a service',
  description:
    'One service with its whole registration: command, folder, ready-check, dependencies, restart policy. ' +
    'Values of its environment are never shown, only their names.',
  effect: 'reads',
  isRepeatable: true,
  operations: ['getService'],
  input: inputShape({ name: nameField }),
  output: ServiceDetail,
  run: ({ client, signal }, { name }) => client.service(name, { signal }),
  text: (service) =>
    [serviceLine(service), `cmd: ${service.cmd}`, `cwd: ${service.cwd}`].join('\n') +
    (service.stale ? '\nIts registration has changed since it was started: restart it.' : ''),
});

const start = defineTool({
  name: 'start',
  title: 'Start a service',
  description:
    'Starts a service and waits until its ready-check passes; of a task, until it has ended. If it fails, ' +
    'the error has its last lines. Cancelling ends the waiting, not the start.',
  effect: 'changes',
  isRepeatable: false,
  operations: ['startService'],
  input: inputShape({
    name: nameField,
    timeout,
    wait: z.boolean().optional().describe('false: return as soon as the process exists'),
  }),
  output: StartResult,
  run: ({ client, signal }, { name, ...options }) => client.start(name, { ...options, signal }),
  text: startedText,
  progress: (call, { name }) => waitingFor(call, name),
});

const stop = defineTool({
  name: 'stop',
  title: 'Stop a service',
  description:
    'Stops a service with every process it has started. The answer proves it: how many processes were ' +
    'ended, what is left, whether the port is free. Harmless when it does not run.',
  effect: 'ends',
  isRepeatable: true,
  operations: ['stopService'],
  input: inputShape({
    name: nameField,
    grace: durationMs('How long it has to end by itself before it is killed; default: its own, usually 5 s'),
  }),
  output: StopResult,
  run: ({ client, signal }, { name, grace }) => client.stop(name, { grace, signal }),
  text: ({ name, reaped, left, portFree, ms }) =>
    `${name} is stopped after ${seconds(ms)}: ${reaped} processes ended` +
    (left.length > 0 ? `, ${left.length} left` : '') +
    (portFree ? '.' : ', and its port is still in use.'),
});

const restart = defineTool({
  name: 'restart',
  title: 'Restart a service',
  description: 'Stops a service if it runs, starts it, and waits until its ready-check passes.',
  effect: 'ends',
  isRepeatable: false,
  operations: ['restartService'],
  input: inputShape({ name: nameField, timeout }),
  output: StartResult,
  run: ({ client, signal }, { name, timeout: ms }) => client.restart(name, { timeout: ms, signal }),
  text: startedText,
  progress: (call, { name }) => waitingFor(call, name),
});

const explain = defineTool({
  name: 'explain',
  title: 'Explain a service',
  description:
    'Why a service has its status, with its last lines, who holds its port, how it ended, and what to do. ' +
    'Use it when a service has crashed or does not become ready.',
  effect: 'reads',
  isRepeatable: true,
  operations: ['explainService'],
  input: inputShape({ name: nameField }),
  output: Explanation,
  run: ({ client, signal }, { name }) => client.explain(name, { signal }),
  text: ({ reason, next, lastLines }) =>
    [reason, ...(lastLines.length > 0 ? ['Its last lines:', ...lastLines] : []), next].join('\n'),
});

const resolve = defineTool({
  name: 'resolve',
  title: 'URL of a service',
  description: 'The URL and port of a service, running or not. With wake, it is started first if it sleeps.',
  effect: 'changes',
  isRepeatable: true,
  operations: ['resolveService', 'getService'],
  input: inputShape({
    name: nameField,
    wake: z.boolean().optional().describe('true: wake it, and return when it is ready'),
    timeout,
  }),
  output: Resolution.extend({ protocol: ServiceDetail.shape.protocol }),
  run: async ({ client, signal }, { name, ...options }) => {
    const resolved = await client.resolve(name, { ...options, signal });
    const { protocol } = await client.service(name, { signal });
    return { ...resolved, protocol };
  },
  text: ({ name, status, ...at }) =>
    `${name} is ${status}${at.url === null ? ' and has no port' : ` at ${shownAddress(at)}`}.`,
  progress: (call, { name }) => waitingFor(call, name),
});

const register = defineTool({
  name: 'register',
  title: 'Register a service',
  description:
    'Registers a command as a service, or replaces the registration of that name: what is left out takes ' +
    'its default. It is not started: use `start`. The command runs in a shell and finds its port in $PORT. ' +
    'A project with a berth.yaml is better brought up with `stack_up`.',
  effect: 'ends',
  isRepeatable: true,
  operations: ['registerService'],
  input: inputShape({
    name: z.string().min(1).describe('Its unique name: a-z, 0-9, _ and -'),
    cmd: z.string().min(1).describe('A shell command that runs in the foreground, such as `npm run dev`'),
    cwd: z.string().optional().describe('The folder it runs in, as an absolute path'),
    port: z
      .int()
      .min(0)
      .max(65_535)
      .nullable()
      .optional()
      .describe('The port it listens on; 0 (the default): a free one, given in $PORT; null: it has none'),
    ready: z
      .string()
      .optional()
      .describe('Ready-check: a URL such as http://localhost:3000/health or tcp://localhost:5432'),
    protocol: z
      .enum(PORT_PROTOCOLS)
      .optional()
      .describe(
        'What it speaks on its port: tcp is anything but HTTP, such as a database; default: told from cmd',
      ),
    env: z.record(z.string(), z.string()).optional().describe('Environment variables'),
    dependsOn: z.array(z.string()).optional().describe('Names of services that must be ready before it'),
    restart: z
      .enum(['no', 'on-failure', 'always'])
      .optional()
      .describe('What to do when it exits on its own'),
    kind: z
      .enum(['service', 'task'])
      .optional()
      .describe('task: a command that ends, such as a migration; see `run_task`'),
    stack: z.string().optional().describe('The stack it belongs to; its name then begins with `<stack>--`'),
  }),
  output: ServiceDetail.pick({ name: true, port: true, url: true, status: true, protocol: true }),
  run: async ({ client, signal, folder, baseEnv }, { port, ...spec }) => {
    const isTask = spec.kind === 'task';
    const registered = await client.register(
      {
        ...spec,
        port: port === undefined ? (isTask ? null : 0) : port,
        cwd: spec.cwd ?? folder,
        ...(baseEnv ? { baseEnv: { ...baseEnv } } : {}),
      },
      { signal },
    );
    return pickFields(registered, ['name', 'port', 'url', 'status', 'protocol']);
  },
  text: ({ name, status, ...at }) =>
    `${name} is registered${at.url === null ? '' : ` at ${shownAddress(at)}`} and ${status}. \`start\` starts it.`,
});

const runTask = defineTool({
  name: 'run_task',
  title: 'Run a task',
  description:
    'Runs a registered task, such as a migration or a test run, waits until it has ended, and returns its ' +
    'last lines. A task that fails is an error with its last lines.',
  effect: 'changes',
  isRepeatable: false,
  operations: ['startService', 'getServiceLogs'],
  input: inputShape({
    name: nameField,
    timeout: durationMs('How long to wait for its end; the task goes on afterwards'),
    ifChanged: z.boolean().optional().describe('true: not if it has completed with the same content before'),
    lines: z.int().min(1).max(1_000).optional().describe('How many of its last lines; default 20'),
  }),
  output: StartResult.extend({ lines: z.array(z.string()) }),
  run: async ({ client, signal }, { name, lines = 20, ...options }) => {
    const done = await client.start(name, { ...options, signal });
    const log = await client.logs(name, { lines, signal });
    return { ...done, lines: log.lines };
  },
  text: ({ lines, ...done }) => [startedText(done), ...lines].join('\n'),
  progress: (call, { name }) => waitingFor(call, name),
});

export const SERVICE_TOOLS = [list, get, start, stop, restart, explain, resolve, register, runTask];
