#!/usr/bin/env node
// The command `berth`. The daemon and the command line share nothing but this file, so that each loads only
// its own code.
import { join } from 'node:path';

const [first, second = '--'] = process.argv.slice(2);
const isDaemon = first === 'daemon' && second.startsWith('-') && second !== '--help' && second !== '-h';
const isCloudServer =
  first === 'cloud' && second === 'serve' && !process.argv.some((one) => one === '--help' || one === '-h');
if (isCloudServer) import('./daemon/main.ts').then(({ serveCloud }) => serveCloud(process.argv.slice(4)));
else if (isDaemon) {
  import('./daemon/worker_thread.ts').then(async ({ startWorker }) => {
    const services = startWorker(join(import.meta.dirname, 'workers/services.cjs'), 'services-0');
    const { runDaemon } = await import('./daemon/main.ts');
    await runDaemon(process.argv.slice(3), services);
  });
} else import('./cli/main.ts').then(({ main }) => main(process.argv.slice(2)));
