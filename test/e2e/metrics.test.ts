// A real Prometheus scrapes a daemon: docs/reference.md "Metrics".
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { afterThisTest } from '../kit/actors.ts';
import { eventually, newFolder, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';

const TOKEN = 'a-token-for-the-scrape';
const hasPrometheus = spawnSync('promtool', ['--version']).status === 0;

/** The value of a query to the Prometheus at `port`; undefined: no such series. */
async function query(port: number, expression: string): Promise<string | undefined> {
  const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expression)}`;
  const answer = await fetch(url).catch(() => undefined);
  const { data } = answer?.ok ? ((await answer.json()) as any) : { data: { result: [] } };
  return data.result[0]?.value[1];
}

it.runIf(hasPrometheus)(
  hasPrometheus ? 'is scraped, and its metrics are clean' : 'skipped: prometheus is not installed',
  async () => {
    const daemon = await startDaemon({ config: `[auth]\ntoken = "${TOKEN}"` });
    const headers = { authorization: `Bearer ${TOKEN}` };
    const sleeper = { name: 'web', port: 0, group: 'shop', cmd: 'exec sleep 1000' };
    await daemon.request('POST', '/v1/services', sleeper, headers);
    expect((await daemon.request('POST', '/v1/services/web/start', undefined, headers)).status).toBe(200);

    const plain = await daemon.request('GET', '/metrics', undefined, { ...headers, accept: 'text/plain' });
    // Fails on every remark of its own.
    execFileSync('promtool', ['check', 'metrics'], { input: plain.text });

    const folder = newFolder();
    const port = await freePort();
    writeFileSync(
      join(folder, 'prometheus.yml'),
      JSON.stringify({
        global: { scrape_interval: '1s', scrape_timeout: '1s' },
        scrape_configs: [
          {
            job_name: 'berth',
            authorization: { credentials: TOKEN },
            static_configs: [{ targets: [`127.0.0.1:${daemon.port}`] }],
          },
        ],
      }),
    );
    const prometheus = spawn(
      'prometheus',
      [
        `--config.file=${join(folder, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: 'ignore' },
    );
    afterThisTest(
      () =>
        new Promise<void>((resolve) => {
          prometheus.once('exit', () => resolve());
          prometheus.kill('SIGTERM');
        }),
    );
    const up = 'berth_service_up{service="web",group="shop",stack=""}';
    expect(await eventually(() => query(port, up))).toBe('1');
    expect(await query(port, 'up{job="berth"}')).toBe('1');
    expect(await query(port, 'berth_service_start_seconds_count{service="web"}')).toBe('1');
    expect(await query(port, 'berth_thread_up{thread="services-0"}')).toBe('1');
    expect(Number(await query(port, 'berth_store_bytes'))).toBeGreaterThan(0);
    expect(await query(port, 'berth_host_runs')).toBe('1');
    expect(Number(await query(port, 'berth_service_memory_working_set_bytes'))).toBeGreaterThan(0);

    await daemon.request('POST', '/v1/services/web/stop', undefined, headers);
    expect(await eventually(async () => ((await query(port, up)) === '0' ? '0' : null))).toBe('0');

    const system = await daemon.request('GET', '/v1/system', undefined, headers);
    expect(system.status).toBe(200);
    expect(system.body.threads.map(({ name, up: isUp }: any) => [name, isUp])).toEqual([
      ['front', true],
      ['services-0', true],
    ]);
    expect(system.body.threads[1].actors.map(({ address }: any) => address)).toContain('registry');
  },
);
