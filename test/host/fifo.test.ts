// The FIFOs of runs, whose folder a person may replace while services run.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Fifos } from '../../src/host/fifo.ts';
import { tempDir } from '../kit/actors.ts';

it('FIFOs do not prevent the end of a run when a file is in the place of their folder', () => {
  const folder = join(tempDir(), 'runs');
  writeFileSync(folder, 'no folder');
  const fifos = new Fifos(folder, null);
  expect(() => fifos.remove('r1')).not.toThrow();
  expect(() => fifos.make('r2')).toThrow();
});
