// Imports a Procfile, as foreman, overmind and Heroku read it.
import { portInCommand, workerSign } from './command_port.ts';
import { dotenvIn, dotenvNotes, withDotenv } from './import_dotenv.ts';
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

/** The services of a Procfile in `folder`. Each gets the `.env` file there, as with foreman. */
export function importProcfile(text: string, folder: string): ImportedProject {
  const taken = new Set<string>();
  const services: ImportedService[] = [];
  const notes: string[] = [];
  const workers: string[] = [];
  const dotenv = dotenvIn(folder);
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
      const service: ImportedService = {
        name,
        cmd: escapeInterpolation(cmd),
        port: portOf(type, cmd),
        ready: portInCommand(cmd) ? 'tcp' : undefined,
      };
      services.push(withDotenv(service, dotenv));
    }
  }
  if (workers.length > 0)
    notes.push(`${workers.join(', ')}: a worker by its name, without $PORT; \`port: auto\` gives it one`);
  return { services, notes: [...notes, ...dotenvNotes(services)] };
}
