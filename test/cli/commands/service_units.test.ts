// The files that start the daemon at login, checked with the programs that read such files.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type DaemonProgram, launchdPlist, systemdUnit } from '../../../src/cli/commands/service_units.ts';

const PROGRAM: DaemonProgram = {
  node: process.execPath,
  script: '/opt/my apps/50% $HOME "quoted"/bin.js',
  args: ['--state-dir', '/home/a b/state'],
  env: { PATH: '/opt/bin:/usr/bin', NODE_EXTRA_CA_CERTS: '/opt/50% ca.pem' },
  log: '/home/a&b/daemon.log',
};

const lines = (text: string, key: string): string[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith(`${key}=`))
    .map((line) => line.slice(key.length + 1));

it('the systemd unit ends only the daemon and leaves the rest of its group alone', () => {
  const unit = systemdUnit(PROGRAM);
  expect(lines(unit, 'KillMode')).toEqual(['process']);
  expect(lines(unit, 'Restart')).toEqual(['on-failure']);
  expect(lines(unit, 'OOMPolicy')).toEqual(['continue']);
  expect(lines(unit, 'Delegate')).toEqual(['yes']);
  expect(lines(unit, 'RestartPreventExitStatus')).toEqual(['2']);
  expect(lines(unit, 'Environment')).toEqual([
    '"PATH=/opt/bin:/usr/bin"',
    '"NODE_EXTRA_CA_CERTS=/opt/50%% ca.pem"',
  ]);
  expect(lines(unit, 'WantedBy')).toEqual(['default.target']);
  expect(lines(unit, 'ExecStart')).toEqual([
    `"${process.execPath}" "/opt/my apps/50%% $$HOME \\"quoted\\"/bin.js" "daemon" "--state-dir" "/home/a b/state"`,
  ]);
});

it('the systemd unit is accepted by systemd-analyze, if that is installed', ({ skip }) => {
  if (spawnSync('systemd-analyze', ['--version']).error) skip('systemd-analyze is not installed');
  const folder = mkdtempSync(join(tmpdir(), 'berth-unit-'));
  try {
    const file = join(folder, 'berth.service');
    writeFileSync(file, systemdUnit(PROGRAM));
    const { status, stderr } = spawnSync('systemd-analyze', ['--user', 'verify', '--man=no', file], {
      encoding: 'utf8',
      env: { ...process.env, XDG_RUNTIME_DIR: folder },
    });
    expect(stderr.split('\n').filter((line) => line.includes('berth.service'))).toEqual([]);
    expect(status).toBe(0);
    writeFileSync(file, systemdUnit(PROGRAM).replace('KillMode=process', 'KillMode=sometimes'));
    const wrong = spawnSync('systemd-analyze', ['--user', 'verify', '--man=no', file], {
      encoding: 'utf8',
      env: { ...process.env, XDG_RUNTIME_DIR: folder },
    });
    expect(wrong.stderr).toContain('berth.service');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('the launchd property list has the same meaning', () => {
  const read = 'import plistlib,sys,json; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))';
  const plist = JSON.parse(
    execFileSync('python3', ['-c', read], { input: launchdPlist(PROGRAM), encoding: 'utf8' }),
  );
  expect(plist).toEqual({
    Label: 'dev.berth.daemon',
    ProgramArguments: [process.execPath, PROGRAM.script, 'daemon', ...PROGRAM.args],
    EnvironmentVariables: PROGRAM.env,
    RunAtLoad: true,
    KeepAlive: { SuccessfulExit: false },
    AbandonProcessGroup: true,
    ExitTimeOut: 120,
    StandardErrorPath: PROGRAM.log,
  });
});
