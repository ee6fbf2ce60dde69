// The files that start the daemon at login: a systemd user unit and a launchd agent. Pure text.

export interface DaemonProgram {
  node: string;
  /** The path of dist/bin.cjs. */
  script: string;
  args: readonly string[];
  /** With the PATH for services: a service manager's own PATH lacks the folders that version managers add. */
  env: Readonly<Record<string, string>>;
  log: string;
}

export const LAUNCHD_LABEL = 'dev.berth.daemon';

/** Quotes a word for ExecStart, where `%` begins a specifier and `$` a variable. The quotes keep blanks. */
const quoteExecWord = (text: string): string =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('$', '$$$$')}"`;

/** Quotes an assignment for Environment, where `$` has no special meaning. */
const quoteEnvironmentValue = (text: string): string =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%')}"`;

/**
 * The systemd user unit. `KillMode=process`: systemd ends only the daemon, which ends its services itself or
 * leaves them to the next daemon; the default would also kill the host and the services.
 * `OOMPolicy=continue`: a service that runs out of memory does not end the unit. `Delegate=yes`: runs with
 * limits get their own control groups. A restart does not fix a wrong setting (exit code 2).
 */
export function systemdUnit({ node, script, args, env }: DaemonProgram): string {
  return `[Unit]
Description=Berth: local services, agents and workloads, by name

[Service]
Type=exec
ExecStart=${[node, script, 'daemon', ...args].map(quoteExecWord).join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
${Object.entries(env)
  .map(([name, value]) => `Environment=${quoteEnvironmentValue(`${name}=${value}`)}`)
  .join('\n')}
KillMode=process
Restart=on-failure
RestartSec=2
RestartPreventExitStatus=2
TimeoutStopSec=120
OOMPolicy=continue
Delegate=yes

[Install]
WantedBy=default.target
`;
}

const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** The launchd agent. `AbandonProcessGroup` corresponds to systemd's `KillMode=process`. */
export function launchdPlist({ node, script, args, env, log }: DaemonProgram): string {
  const words = [node, script, 'daemon', ...args]
    .map((one) => `    <string>${escapeXml(one)}</string>`)
    .join('\n');
  const variables = Object.entries(env)
    .map(([name, value]) => `    <key>${name}</key>\n    <string>${escapeXml(value)}</string>`)
    .join('\n');
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${LAUNCHD_LABEL}</string>
  <key>ProgramArguments</key>
  <array>
${words}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
${variables}
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>AbandonProcessGroup</key>
  <true/>
  <key>ExitTimeOut</key>
  <integer>120</integer>
  <key>StandardErrorPath</key>
  <string>${escapeXml(log)}</string>
</dict>
</plist>
`;
}
