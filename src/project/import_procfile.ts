// Imports a Procfile, as foreman, overmind and Heroku read it.
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnvText } from '../settings/env_text.ts';
import { readTextFile } from '../settings/state_files.ts';
import { portInCommand, workerSign } from './command_port.ts';
import {
  escapeInterpolation,
  type ImportedProject,
  type ImportedService,
  toServiceName,
} from './imported_project.ts';

/**
 * The port of a process. As with foreman, each gets a separate port, which it may read in a way that its
 * command does not show. Workers get none, because their address would lead nowhere.
 */
const portOf = (type: string, cmd: string): number | string | null =>
  portInCommand(cmd)?.port ?? (workerSign(type, cmd) === null ? 'auto' : null);

/** A name may mislead, and a server would then lack its port. */
const isPortTakenByName = (type: string, cmd: string): boolean =>
  portInCommand(cmd) === null && workerSign(type, cmd) === 'name';

/** Whether the `.env` at `path` may set PORT. A FIFO gives its text once, to the reader of the project. */
const maySetPort = (path: string): boolean =>
  !statSync(path).isFile() || parseEnvText(readTextFile(path)).some(([key]) => key === 'PORT');

/**
 * The services of a Procfile in `folder`. Each gets the `.env` file there, as with foreman: except for its
 * PORT, which would give all processes the same port. Throws what the reading throws.
 */
export function importProcfile(text: string, folder: string): ImportedProject {
  const taken = new Set<string>();
  const services: ImportedService[] = [];
  const notes: string[] = [];
  const workers: string[] = [];
  const dotenv = join(folder, '.env');
  const envFile = existsSync(dotenv) ? '.env' : undefined;
  const isPortSet = envFile !== undefined && maySetPort(dotenv);
  for (const [index, line] of text.split('\n').entries()) {
    const [, type, cmd] = /^([A-Za-z0-9_-]+):\s*(\S.*?)\s*$/.exec(line) ?? [];
    if (type === undefined || cmd === undefined) {
      if (line.trim() !== '' && !line.trim().startsWith('#'))
        notes.push(`line ${index + 1} is no \`name: command\``);
    } else if (type === 'release') {
      notes.push('release is run once before a deployment: not a service');
    } else {
      const name = toServiceName(type, taken);
      if (isPortTakenByName(type, cmd)) workers.push(name);
      const port = portOf(type, cmd);
      services.push({
        name,
        cmd: escapeInterpolation(cmd),
        port,
        ready: portInCommand(cmd) ? 'tcp' : undefined,
        env_file: envFile,
        env: isPortSet && port !== null ? new Map([['PORT', `\${port.${name}}`]]) : undefined,
      });
    }
  }
  if (workers.length > 0)
    notes.push(`${workers.join(', ')}: a worker by its name, without $PORT; \`port: auto\` gives it one`);
  if (services.some(({ env }) => env))
    notes.push('PORT in .env is overridden: each process has its own port, which `port: 5000` can set');
  return { services, notes };
}
