// The keys of a process-compose file that are carried over, and how its numbers and flags are read.
import type { YamlNode } from '../adapters/yaml.ts';
import type { KnownKeys } from './dropped_keys.ts';
import { nodeAt, scalarText } from './lenient_yaml.ts';
import { SCHEDULE_KEYS } from './process_compose_schedule.ts';

const isNumber = (text: string): boolean =>
  text.trim() !== '' && Number.isInteger(Number(text)) && Number(text) >= 0;

/** The whole number at a path of keys; undefined for none, and for what is no such number. */
export const numberAt = (node: YamlNode | undefined, ...keys: string[]): number | undefined => {
  const text = scalarText(nodeAt(node, ...keys));
  return text !== undefined && isNumber(text) ? Number(text) : undefined;
};

const isNumberFrom = (least: number, most: number) => (text: string) =>
  isNumber(text) && Number(text) >= least && Number(text) <= most;
const isPortNumber = isNumberFrom(1, 65_535);
/** Variables of a project file that have a value. */
const VARIABLES = /\$\{(?!\w+:-\})/;

/** Whether a text is a port, perhaps from variables. */
export const isPort = (text: string): boolean =>
  isPortNumber(text) || (VARIABLES.test(text) && !text.includes('{{'));

const isHost = (text: string): boolean => /^(?:[\w.:[\]-]|\$\{.*\})+$/.test(text);
const isScheme = (text: string): boolean => /^https?$/i.test(text);

/** The text at the key `key` of an `http_get`, if it is a possible one. */
export const httpText = (get: YamlNode | undefined, key: 'host' | 'port' | 'scheme'): string | undefined => {
  const text = scalarText(nodeAt(get, key));
  return text !== undefined && HTTP_GET[key](text) ? text : undefined;
};

const YES = /^(?:true|t|yes|y|on|1)$/i;
const NO = /^(?:false|f|no|n|off|0)$/i;
const isFlag = (text: string): boolean => YES.test(text) || NO.test(text);

/** Whether a flag is set. */
export const isYes = (node: YamlNode | undefined): boolean => YES.test(scalarText(node) ?? '');

const HTTP_GET = { host: isHost, port: isPort, scheme: isScheme } as const;

const PROBE: KnownKeys = {
  http_get: { ...HTTP_GET, path: true, status_code: isNumberFrom(100, 599) },
  exec: { command: true },
  period_seconds: isNumber,
  timeout_seconds: isNumber,
  failure_threshold: isNumber,
};

/** Those of a process. */
export const PROCESS: KnownKeys = {
  command: true,
  entrypoint: true,
  description: true,
  working_dir: true,
  environment: true,
  depends_on: true,
  readiness_probe: { ...PROBE, initial_delay_seconds: isNumber },
  liveness_probe: { ...PROBE },
  ready_log_line: true,
  availability: { restart: true, backoff_seconds: isNumber, max_restarts: isNumber },
  shutdown: { command: true, signal: true, timeout_seconds: isNumber },
  namespace: true,
  disabled: isFlag,
  is_disabled: isFlag,
  replicas: isNumber,
  schedule: { ...SCHEDULE_KEYS, run_on_start: isFlag },
  is_dotenv_disabled: isFlag,
  vars: true,
  is_template_disabled: isFlag,
};

/** Those of the whole file. */
export const FILE: KnownKeys = {
  version: true,
  environment: true,
  processes: true,
  vars: true,
  disable_env_expansion: isFlag,
  shell: { shell_command: true, shell_argument: true },
};
