// berth cloud serve
import { defineCommand, SERVER_OPTIONS } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';

/** Exists for the help: src/bin.ts runs `berth cloud serve` without loading the command line. */
export const cloudServeCommand = defineCommand({
  about:
    'Serves clusters, workloads, policies and remote tethers to a team, and nothing of this machine. It listens on ' +
    'cloud.bind and cloud.port, prints one line once it serves, and runs until SIGTERM or SIGINT. ' +
    'deploy/ has the manifests and the chart that run it in Kubernetes.',
  options: {
    ...SERVER_OPTIONS,
  },
  examples: [
    ['BERTH_CLOUD_BIND=0.0.0.0 berth cloud serve', 'serve on all addresses, behind a proxy that ends TLS'],
  ],
  run: async () => {
    throw new UsageError(
      '`berth cloud serve` takes only --config and --state-dir',
      'Put them after the word serve.',
    );
  },
});
