// berth --version

import { isBerthError } from '../../client/errors.ts';
import { SettingsError } from '../../settings/config.ts';
import { StateFileError } from '../../settings/state_files.ts';
import { VERSION } from '../../settings/version.ts';
import type { CommandContext } from '../kit/context.ts';

/**
 * Prints the versions of Berth, Node and a running daemon; warns if Berth's and the daemon's differ, or if
 * the configuration is invalid.
 */
export async function printVersion(context: CommandContext): Promise<undefined> {
  const daemon = await context
    .client()
    .then((client) => client.version())
    .catch((error: unknown) => {
      if (isBerthError(error)) return null;
      // Who reports a problem is asked for the version first.
      if (!(error instanceof SettingsError || error instanceof StateFileError)) throw error;
      context.out.warn(error.message);
      return null;
    });
  const all = { version: VERSION, node: process.version, daemon: daemon?.version ?? null };
  context.out.record(all, () =>
    [
      `berth ${VERSION} (node ${process.version})`,
      ...(daemon ? [`daemon ${daemon.version}, pid ${daemon.pid}`] : []),
    ].join('\n'),
  );
  if (daemon && daemon.version !== VERSION) {
    context.out.warn(
      `the daemon is ${daemon.version}: restart it with \`berth daemon stop\` and \`berth daemon start\``,
    );
  }
}
