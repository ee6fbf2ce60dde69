// The streams that `berth run` carries between its caller and the command, through real FIFOs.
import { execFileSync } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { redirectStreams } from '../../../src/cli/kit/redirected_streams.ts';

it('output of a command that ended before it was read is complete with its end', async () => {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const streams = redirectStreams({ stdin, stdout, stderr });
  // Nothing else runs here until the command has ended.
  execFileSync('/bin/sh', ['-c', streams.command('echo out; echo no >&2')]);
  // Longer than the test may take: it does not wait for that, but for the ends of the outputs.
  await streams.end(600_000);
  stdout.end();
  stderr.end();
  expect([await text(stdout), await text(stderr)]).toEqual(['out\n', 'no\n']);
});
