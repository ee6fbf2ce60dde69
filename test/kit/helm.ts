// Helm for the tests of deploy/chart. BERTH_TEST_HELM names the program; .ci/run installs one.
import { execFile } from 'node:child_process';
import { chmodSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { tempDir } from './actors.ts';

const run = promisify(execFile);
const program = process.env['BERTH_TEST_HELM'];
/** The chart needs a Kubernetes that is newer than the one Helm assumes on its own. */
const KUBE_VERSION = '1.29.0';
const POST_RENDERER = resolve(import.meta.dirname, 'helm_post_renderer.mjs');
const ROOT = resolve(import.meta.dirname, '../..');

export const CHART = join(ROOT, 'deploy/chart');

export const hasHelm = program !== undefined;
/** For the name of a test that is skipped without it. */
export const NO_HELM = hasHelm ? '' : ' (skipped: no Helm; BERTH_TEST_HELM names one)';

/** Runs Helm with a home of its own, and returns what it prints. Rejects with its errors. */
export async function helm(...args: string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], HOME: tempDir(), BERTH_ROOT: ROOT };
  const { stdout } = await run(program ?? 'helm', args, { env });
  return stdout;
}

export const valuesOf = (values: readonly string[]): string[] => values.flatMap((value) => ['--set', value]);

/** The manifests that the chart renders with `values`, as `name=value`. */
export const render = (values: readonly string[] = []): Promise<string> =>
  helm('template', 'berth', CHART, '--kube-version', KUBE_VERSION, ...valuesOf(values));

/** A copy of the chart for Kubernetes 1.20 too, which has the disruption budget as v1beta1. */
export function chartForOldCluster(): string {
  const folder = join(tempDir(), 'chart');
  cpSync(CHART, folder, { recursive: true });
  const replace = (name: string, from: string, to: string): void => {
    const path = join(folder, name);
    writeFileSync(path, readFileSync(path, 'utf8').replace(from, to));
  };
  replace('Chart.yaml', '>=1.21.0-0', '>=1.20.0-0');
  replace('templates/poddisruptionbudget.yaml', 'policy/v1', 'policy/v1beta1');
  return folder;
}

/** The program for `--post-renderer` that lets pods run the build of this checkout with this machine's Node. */
export function postRenderer(): string {
  const path = join(tempDir(), 'post-renderer');
  writeFileSync(path, `#!/bin/sh\nexec '${process.execPath}' '${POST_RENDERER}'\n`);
  chmodSync(path, 0o755);
  return path;
}
