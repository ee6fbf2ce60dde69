// The files that start the daemon at login: a systemd user unit and a launchd agent. Pure text.

export interface DaemonProgram {
  node: string;
  /** dist/bin.cjs. */
  script: string;
  args: readonly string[];
  /** The PATH that services will have: a manager's own lacks what version managers add. */
  path: string;
  log: string;
}

export const LAUNCHD_LABEL = 'dev.berth.daemon';

/** One word of a unit file: `%` is a specifier there and `$` a variable, quotes keep blanks. */
const quoteExecWord = (text: string): string =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('$', '$$$$')}"`;

/** In an assignment `$` means nothing. */
const quoteEnvironmentValue = (text: string): string =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%')}"`;

/**
 * The user unit. `KillMode=process`: the manager ends the daemon alone, which ends its services itself or
 * leaves them to the next one; the default would kill host and services with it. `OOMPolicy=continue`: a
 * service that runs out of memory takes nothing else along. `Delegate=yes`: runs with limits get control
 * groups of their own. A wrong setting (exit code 2) does not get better by starting again.
 */
export function systemdUnit({ node, script, args, path }: DaemonProgram): string {
  return `[Unit]
Description=Berth: local services, agents and workloads, by name

[Service]
Type=exec
ExecStart=${[node, script, 'daemon', ...args].map(quoteExecWord).join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
Environment=${quoteEnvironmentValue(`PATH=${path}`)}
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

/** The launchd agent. `AbandonProcessGroup` is what `KillMode=process` is to systemd. */
export function launchdPlist({ node, script, args, path, log }: DaemonProgram): string {
  const words = [node, script, 'daemon', ...args]
    .map((one) => `    <string>${escapeXml(one)}</string>`)
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
    <key>PATH</key>
    <string>${escapeXml(path)}</string>
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
