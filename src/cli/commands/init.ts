// berth init
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { hasTerminal } from '../../adapters/process/process_table.ts';
import { runningDaemon } from '../../adapters/process/running_daemon.ts';
import { PROJECT_FILE_NAMES } from '../../project/find_project_file.ts';
import { SCHEMA_LINE } from '../../project/imported_project.ts';
import { importableFiles } from '../../project/importers.ts';
import { writeProject } from '../../project/write_project.ts';
import { configFile, loadSettings, SettingsError } from '../../settings/config.ts';
import { replaceFile } from '../../settings/replace_file.ts';
import { defineCommand, negatedFlagOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { convertToProject, NothingToRunError } from '../kit/convert_project.ts';
import { relativePath } from '../kit/format.ts';

const TEMPLATE = `# \`berth up\` starts these services, \`berth down\` stops and removes them.
services:
  web:
    # The shell command. It finds its port in $PORT.
    cmd: python3 -m http.server $PORT --bind 127.0.0.1
    # A number, or auto: a free port that the service keeps.
    port: auto
    # The ready-check: a path on its port, a URL, or tcp.
    ready: /
    # Optional:
    # cwd: web                     folder it runs in, relative to this file
    # env: { MODE: dev }           \${NAME:-default} is taken from your shell or .env
    # env_file: .env
    # depends_on: [db]             services that must be ready first
    # group: site                  berth group start site
    # restart: on-failure          or always
    # stop: { signal: SIGINT, grace: 10s }
`;

interface InitResult {
  path: string;
  isWritten: boolean;
  text: string;
}

async function ensureProjectFile(context: CommandContext): Promise<InitResult> {
  const folder = process.cwd();
  const existing = PROJECT_FILE_NAMES.map((name) => join(folder, name)).find((path) => existsSync(path));
  if (existing)
    return { path: existing, isWritten: false, text: `${relativePath(existing)} is there already` };
  const path = join(folder, 'berth.yaml');
  for (const source of importableFiles(folder)) {
    const converted = await convertIfUseful(source, context);
    if (converted === null) continue;
    for (const note of converted.notes) context.out.warn(note);
    writeProject(path, converted.text);
    return { path, isWritten: true, text: `${relativePath(path)} is written from ${basename(source)}` };
  }
  writeProject(path, `${SCHEMA_LINE}\n${TEMPLATE}`);
  return { path, isWritten: true, text: `${relativePath(path)} is written, with a first service to change` };
}

/** The converted file; null, with a warning, when it has nothing to run, as the package.json of a library. */
async function convertIfUseful(source: string, context: CommandContext) {
  try {
    return await convertToProject(source);
  } catch (error) {
    if (!(error instanceof NothingToRunError)) throw error;
    context.out.warn([error.message, error.hint].filter(Boolean).join(': '));
    return null;
  }
}

/** Whether the configuration would have `token` if its existing file had `text`. */
async function wouldSet(token: string, text: string, named: string | undefined): Promise<boolean> {
  try {
    return (await loadSettings(named, process.env, () => text)).auth.token === token;
  } catch (error) {
    if (error instanceof SettingsError) return false;
    throw error;
  }
}

/** Adds `auth.token` to the configuration, and makes a background daemon read it. */
async function ensureToken(context: CommandContext): Promise<InitResult> {
  const { settings, stateDir } = await context.local();
  const named = context.globalOptions.config;
  const { path } = configFile(named, process.env);
  if (settings.auth.token) return { path, isWritten: false, text: 'a token is set already' };
  const isNew = !existsSync(path);
  const before = isNew ? '' : readFileSync(path, 'utf8');
  const gap = before === '' || before.endsWith('\n\n') ? '' : '\n';
  const token = randomBytes(24).toString('base64url');
  const after = `${before}${gap}[auth]\ntoken = "${token}"\n`;
  // TOML has many ways to write a table, and takes each table once.
  if (!isNew && !(await wouldSet(token, after, named))) {
    const hint = 'write token = "..." there, with at least 22 random characters';
    return { path, isWritten: false, text: `${path} has an [auth] without a token: ${hint}` };
  }
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  replaceFile(path, after, 0o600);
  const text = `${path} has a token now, so that no other user and no web page can use your daemon`;
  const daemon = runningDaemon(stateDir);
  // SIGHUP would end a daemon that runs in a terminal, and its services with it.
  const canReload = daemon !== undefined && hasTerminal(daemon.pid) === false;
  if (canReload) process.kill(daemon.pid, 'SIGHUP');
  return {
    path,
    isWritten: true,
    text: daemon && !canReload ? `${text}: start that one again, it runs in a terminal` : text,
  };
}

export const initCommand = defineCommand({
  about:
    'Writes berth.yaml in this folder: from a Procfile, package.json, compose or process-compose file if ' +
    'there is one, else with an example that runs. Sets a token in your configuration if it has none; ' +
    'berth finds it there. Existing files and tokens stay unchanged.',
  options: { token: negatedFlagOption('--no-token', 'do not set a token') },
  run: async (context, _args, { token: wantsToken }) => {
    const project = await ensureProjectFile(context);
    const secret = wantsToken ? await ensureToken(context) : undefined;
    const made = [project, ...(secret ? [secret] : [])];
    const record = {
      project: project.path,
      config: secret?.path ?? null,
      made: made.filter((one) => one.isWritten).map(({ path }) => path),
    };
    context.out.record(record, () =>
      [...made.map(({ text }) => text), '`berth up` brings the services up.'].join('\n'),
    );
  },
});
