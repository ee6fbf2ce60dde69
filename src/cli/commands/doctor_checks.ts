// The checks of `berth doctor`. None changes anything that stays.
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { PLATFORM_PARTS, type PlatformPart } from '../../adapters/platform_parts.ts';
import { openFilesTrouble } from '../../adapters/process/open_files_limit.ts';
import { isSuspended, SUSPENDED, wayToContinue } from '../../adapters/process/process_table.ts';
import { runningDaemon } from '../../adapters/process/running_daemon.ts';
import { otherUsers } from '../../adapters/process/users.ts';
import { loadRules } from '../../adapters/screen_rules_file.ts';
import { damagedRows } from '../../adapters/storage/damaged_rows.ts';
import { createClient } from '../../client/create_client.ts';
import { nodeTransport } from '../../client/node_transport.ts';
import { configFile, rulesFolder } from '../../settings/config.ts';
import { checkStateDir, checkWritable, cloudKeyPath } from '../../settings/state_dir.ts';
import { statePaths } from '../../settings/state_paths.ts';
import { tokenWarnings } from '../../settings/token_warnings.ts';
import { VERSION } from '../../settings/version.ts';
import { hasErrorCode } from '../kit/context.ts';
import {
  type DoctorCheck,
  errorMessage,
  isSilent,
  versionOf,
  withDaemon,
  withLocal,
} from './doctor_check.ts';
import { clusterFinding } from './doctor_clusters.ts';
import type { DoctorFinding } from './doctor_finding.ts';
import { limitsTrouble } from './doctor_limits.ts';
import { noticeFindings } from './doctor_notices.ts';
import { daemonParts } from './doctor_parts.ts';
import { daemonStart } from './doctor_start.ts';

const OLDEST_NODE = [20, 19] as const;
const MIN_FREE_BYTES = 200 * 1024 * 1024;

const ok = (about: string): DoctorFinding[] => [{ state: 'ok', about }];

const node: DoctorCheck = async () => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isOld = major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]);
  if (!isOld) return ok(`node ${process.version} on ${process.platform} ${process.arch}`);
  return [
    {
      state: 'wrong',
      about: `node ${process.version} is too old`,
      fix: `berth needs ${OLDEST_NODE.join('.')} or newer`,
    },
  ];
};

/** The features in `parts` that this system lacks. */
export function platformFindings(parts: readonly PlatformPart[]): DoctorFinding[] {
  return parts
    .filter(({ isHere }) => !isHere())
    .map(({ name, without }) => ({ state: 'warning', about: `this system lacks ${name}`, fix: without }));
}

const platform: DoctorCheck = async () => platformFindings(PLATFORM_PARTS);

const shell: DoctorCheck = async () => {
  try {
    accessSync('/bin/sh', constants.X_OK);
    return [];
  } catch {
    return [{ state: 'wrong', about: '/bin/sh is missing: every service is run by it' }];
  }
};

const settings: DoctorCheck = async (context) => {
  try {
    await context.local();
    return ok('the configuration can be read');
  } catch (error) {
    return [
      {
        state: 'wrong',
        about: errorMessage(error),
        fix: 'Correct the file: the daemon does not start with it.',
      },
    ];
  }
};

const stateDir = withLocal(async (_cli, { stateDir: path }) => {
  try {
    checkStateDir(path);
    for (const folder of [path, statePaths(path).host]) if (existsSync(folder)) checkWritable(folder);
  } catch (error) {
    return [{ state: 'wrong', about: errorMessage(error), fix: 'The daemon does not start with it.' }];
  }
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) return ok(`the state directory ${path} will be made at the first start`);
  if (stat.mode & 0o077)
    return [{ state: 'warning', about: `others can read ${path}`, fix: `chmod 700 ${path}` }];
  const { bavail, bsize } = statfsSync(path);
  if (bavail * bsize < MIN_FREE_BYTES) {
    return [
      {
        state: 'warning',
        about: `the disk of ${path} is almost full`,
        fix: 'Output of services is dropped when it is.',
      },
    ];
  }
  return ok(`the state directory is ${path}`);
});

const store = withLocal(async (_cli, { stateDir: path }) => {
  const { damaged } = statePaths(path);
  const { leftOut, restored } = damagedRows(damaged);
  const finding = (rows: readonly string[], outcome: string, fix: string): DoctorFinding[] => {
    const names = `${rows.slice(0, 10).join(', ')}${rows.length > 10 ? ' and others' : ''}`;
    return rows.length === 0
      ? []
      : [{ state: 'warning', about: `damaged or lost rows of the store ${outcome}: ${names}`, fix }];
  };
  return [
    ...finding(
      leftOut,
      'were left out',
      'Register again what is missing: a service takes over its process and logs, which are left alone until then, ' +
        `and can then be removed. Then remove ${damaged}.`,
    ),
    ...finding(
      restored,
      'are now those of its last copy',
      `Check that their latest change is there, then remove ${damaged}.`,
    ),
  ];
});

const daemon = withLocal(async (_cli, local) => {
  const running = runningDaemon(local.stateDir);
  if (!running)
    return [{ state: 'warning', about: 'no daemon is running', fix: '`berth daemon start` starts one.' }];
  if (isSuspended(running.pid)) {
    const about = `the daemon (pid ${running.pid}) ${SUSPENDED}`;
    return [{ state: 'wrong', about, fix: wayToContinue(running.pid) }];
  }
  try {
    const { version, pid, front } = await versionOf(local.client);
    const findings = ok(`the daemon runs (pid ${pid}, port ${running.port})`);
    if (version !== VERSION) {
      findings.push({
        state: 'warning',
        about: `the daemon is ${version}, this program ${VERSION}`,
        fix: 'Restart it: berth daemon stop && berth daemon start',
      });
    }
    if (front.startsWith('node')) {
      findings.push({
        state: 'warning',
        about: 'the daemon serves with node:http: no binary of uWebSockets.js loads here',
        fix: 'All works, with fewer requests per second. The log of the daemon has the reason.',
      });
    }
    return findings;
  } catch (error) {
    const about = `the daemon (pid ${running.pid}) does not answer: ${errorMessage(error)}`;
    if (!hasErrorCode(error, 'unproven')) return [{ state: 'wrong', about }];
    const fix = process.env['BERTH_AUTH_TOKEN']
      ? 'BERTH_AUTH_TOKEN, which overrides auth.token, is not its token: correct or unset it.'
      : `If its token was changed, \`kill -HUP ${running.pid}\` makes it read the new one. ` +
        '`berth daemon restart` does so too, but may stop services.';
    return [{ state: 'wrong', about, fix }];
  }
});

const gateway = withDaemon(async (_cli, { client, settings }) => {
  const { port } = settings.gateway;
  if (port === -1) return [];
  const version = await versionOf(client).catch(() => undefined);
  if (!version) return [];
  if (version.gatewayPort !== null)
    return ok(`agents are served by host name on port ${version.gatewayPort}`);
  return [
    {
      state: 'warning',
      about: `there is no gateway: at the start of the daemon somebody else had port ${port}, or [::1]:${port}`,
      fix: 'The log of the daemon names the holder. End that, or set gateway.port, and restart the daemon.',
    },
  ];
});

/** Whether the daemon refuses a request without a token; null: no daemon answers. */
async function asksForToken(url: () => string): Promise<boolean | null> {
  try {
    await createClient(nodeTransport, { url }).version();
    return false;
  } catch (error) {
    return hasErrorCode(error, 'unauthorized') ? true : null;
  }
}

const missingToken = (): DoctorFinding => {
  const others = otherUsers();
  if (others.length === 0) return { state: 'ok', about: 'no token is set, and nobody else can log in here' };
  const names = `${others.slice(0, 3).join(', ')}${others.length > 3 ? ' and others' : ''}`;
  const about = `no token is set: ${names} can log in here and run commands as you`;
  return { state: 'warning', about, fix: '`berth init` sets one.' };
};

/** Compares whether the configuration has a token with whether the daemon requires one. */
function tokenFinding(isSet: boolean, isAsked: boolean | null): DoctorFinding {
  if (isSet && isAsked === false)
    return {
      state: 'wrong',
      about: 'the daemon asks for no token, although the configuration has one: anybody here can use it',
      fix: 'It reads its token when it starts: start it again.',
    };
  if (isSet && isAsked === null) return { state: 'ok', about: 'a token is set' };
  if (isSet) return { state: 'ok', about: 'a token is set: only those who have it can use the daemon' };
  if (!isAsked) return missingToken();
  return {
    state: 'warning',
    about: 'the daemon asks for a token, which the configuration does not have',
    fix: 'Set auth.token, or BERTH_AUTH_TOKEN, to the token of the daemon.',
  };
}

const token = withLocal(async ({ globalOptions }, local) => {
  const { settings: read, url } = local;
  const isAsked = (await isSilent(local)) ? null : await asksForToken(url);
  const finding = tokenFinding(read.auth.token !== '', isAsked);
  const { path } = configFile(globalOptions.config, process.env);
  const doubts = tokenWarnings(read, path).map((warning) => ({ state: 'warning', ...warning }) as const);
  return [finding, ...doubts];
});

const agentHostNames = withLocal(async (_cli, { settings: { agents } }) => {
  const host = `doctor.${agents.domain}`;
  // Loaded here because no other command needs it.
  const { lookup } = await import('node:dns/promises');
  const address = await lookup(host).catch(() => undefined);
  if (address && (address.address === '::1' || address.address.startsWith('127.')))
    return ok(`${host} leads to this machine`);
  const why = address ? `leads to ${address.address}` : 'is not known to this system';
  return [
    {
      state: 'warning',
      about: `${host} ${why}: programs other than browsers and curl cannot open agents by host name`,
      fix:
        'Browsers and curl know *.localhost themselves. ' +
        'For the others: install libnss-myhostname, or use the ports.',
    },
  ];
});

/** The packages with native binaries, which npm chooses for the system. Agents need the third package. */
const NATIVE_PACKAGES = ['@koromix/koffi', '@lmdb/lmdb', '@lydell/node-pty'] as const;

const nativePackages: DoctorCheck = async () => {
  const { resolve } = createRequire(join(import.meta.dirname, 'package.json'));
  const isMissing = (name: string): boolean => {
    try {
      resolve(`${name}/package.json`);
      return false;
    } catch {
      return true;
    }
  };
  return NATIVE_PACKAGES.map((name) => `${name}-${process.platform}-${process.arch}`)
    .filter(isMissing)
    .map((name) => ({
      state: 'wrong',
      about: `the package ${name} is missing`,
      fix: 'Install Berth again on this machine, with its optional packages.',
    }));
};

const libc: DoctorCheck = async () => {
  try {
    const { loadLibc } = await import('../../adapters/process/libc.ts');
    await loadLibc();
    return [];
  } catch (error) {
    const reason = errorMessage(error);
    const about = `koffi does not load, so there are no agents and orphans may be missed: ${reason}`;
    return [
      { state: 'warning', about, fix: 'Install berth again on this machine, with its optional packages.' },
    ];
  }
};

/** Requests the clusters only if one may be registered, because a request would start the cloud part. */
const clusters = withDaemon(async (_cli, local) => {
  if (!existsSync(cloudKeyPath(local.settings.cloud.key_file, local.stateDir))) return [];
  try {
    const { cloud } = local.client;
    const all = await Promise.all((await cloud.clusters()).map(({ id }) => cloud.cluster(id)));
    const findings = all.flatMap((cluster) => clusterFinding(cluster) ?? []);
    if (all.length === 0 || findings.length > 0) return findings;
    return ok(`all clusters accept their accounts (${all.length})`);
  } catch (error) {
    return [{ state: 'warning', about: `the clusters cannot be asked for: ${errorMessage(error)}` }];
  }
});

/** Whether the daemon watches all files that services ask it to watch. */
const watches = withDaemon(async (_cli, { client }) => {
  try {
    const names = (await client.services()).filter(({ pid }) => pid !== undefined).map(({ name }) => name);
    const all = await Promise.all(names.map(async (name) => ({ name, ...(await client.explain(name)) })));
    const watching = all.flatMap(({ name, watching: state }) => (state ? [{ name, ...state }] : []));
    const troubled = watching.filter(({ trouble }) => trouble !== null);
    const folders = watching.reduce((sum, one) => sum + one.folders, 0);
    if (watching.length > 0 && troubled.length === 0)
      return ok(`files are watched for services (${watching.length}; ${folders} folders)`);
    return troubled.map(({ name, trouble }) => ({
      state: 'warning',
      about: `changes of the files of ${name} may go unnoticed: ${trouble}`,
    }));
  } catch (error) {
    return [{ state: 'warning', about: `services cannot be asked for: ${errorMessage(error)}` }];
  }
});

const notices = withDaemon(async (_cli, { client }) => noticeFindings(client));

const limits = withLocal(async (_cli, { stateDir: path }) => {
  const running = runningDaemon(path);
  if (!running) return [];
  const trouble = limitsTrouble(running.pid, path);
  if (trouble === null) return ok('limits of services are enforced by control groups');
  const about = `limits of services: only the one on memory is enforced, every 2 s; ${trouble}`;
  return ok(about);
});

/** The open-file limit of this shell, which a daemon started from it would inherit. */
const openFiles: DoctorCheck = async () => {
  const trouble = openFilesTrouble();
  return trouble === null
    ? []
    : [{ state: 'wrong', about: trouble, fix: 'the daemon does not start before' }];
};

/** The faults in the user's screen rules. */
const screenRules: DoctorCheck = async ({ globalOptions }) => {
  const folder = rulesFolder(configFile(globalOptions.config, process.env).path);
  const { faults } = await loadRules({ folders: [folder] });
  return faults.map(({ file, line, message }) => ({
    state: 'warning',
    about: `a rule for screens is left out: ${file}:${line}: ${message}`,
    fix: 'correct it; the next agent that starts has it',
  }));
};

export const DOCTOR_CHECKS: readonly DoctorCheck[] = [
  node,
  platform,
  shell,
  nativePackages,
  libc,
  settings,
  stateDir,
  store,
  daemon,
  daemonStart,
  daemonParts,
  gateway,
  token,
  agentHostNames,
  watches,
  screenRules,
  limits,
  openFiles,
  notices,
  clusters,
];
