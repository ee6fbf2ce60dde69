// berth k8s tether --remote: a tether to a workload of another Berth, without a daemon.
import {
  admitToRelay,
  connectRemote,
  hasRemoteToken,
  type RemoteBerth,
  watchHolder,
} from '../../client/remote_berth.ts';
import type { TetherInput } from '../../protocol/tethers.ts';
import { isBerthAddress } from '../../settings/config.ts';
import { statePaths } from '../../settings/state_paths.ts';
import type { CommandContext } from '../kit/context.ts';
import { CommandError, UsageError } from '../kit/exit_codes.ts';
import { findWorkload, workloadName } from '../kit/k8s_lookup.ts';

async function remoteToken(context: CommandContext, url: string): Promise<RemoteBerth['token']> {
  const { settings, stateDir } = await context.local();
  if (settings.cloud.remote_token) return settings.cloud.remote_token;
  if (hasRemoteToken(stateDir, url)) return { stateDir };
  const { remoteToken: path } = statePaths(stateDir);
  throw new CommandError(
    'the token of that Berth is missing',
    `Log in with berth login ${url}, give it in BERTH_REMOTE_TOKEN, or put it into ${path} (chmod 600).`,
  );
}

/** Forwards connections until Ctrl-C. Throws a CommandError, a UsageError and the client's errors. */
export async function tetherRemotely(
  context: CommandContext,
  url: string,
  {
    reference,
    cluster,
    ...input
  }: Omit<TetherInput, 'workloadId'> & {
    reference: string;
    cluster: string | undefined;
  },
): Promise<never> {
  if (!isBerthAddress(url)) {
    const hint = 'Give an origin such as https://berth.example.com; http is for this machine only.';
    throw new UsageError(`${url} is not the address of a Berth`, hint);
  }
  const { out } = context;
  const remote: RemoteBerth = { url, token: await remoteToken(context, url) };
  const client = connectRemote(remote);
  const workload = await findWorkload(client, reference, cluster);
  const [from, to] = (await context.local()).settings.cloud.tether_ports;
  const { openForegroundTether } = await import('../../actors/tethers/foreground_tether.ts');
  const { port } = await openForegroundTether({
    tether: { ...input, workloadId: workload.id },
    ports: Array.from({ length: to - from + 1 }, (_, index) => from + index),
    admit: () => admitToRelay(client, url),
    watchHolder: () => watchHolder(remote),
    onError: (reason) => out.note(`a connection was reset: ${reason}`),
    onDefect: (error) => {
      throw error;
    },
  });
  const name = workloadName(workload);
  if (!out.isData) out.note(`${name} port ${input.containerPort} is at localhost:${port} until Ctrl-C`);
  const record = { local_port: port, workload_id: workload.id, container_port: input.containerPort };
  out.record(record, () => `localhost:${port}`);
  return new Promise<never>(() => undefined);
}
