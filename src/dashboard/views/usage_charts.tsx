// CPU and memory of the last hour or day: the daemon's stored history, and new measurements.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { eventState, eventSubject } from '../../presentation/event_text.ts';
import { cpuText, memoryText } from '../../presentation/format.ts';
import { toneOf } from '../../presentation/state_tone.ts';
import type { ChartData, ChartMark, PageChart } from '../parts/chart.ts';
import { recentEvents, usageOf } from '../state/daemon.ts';
import { client } from '../state/session.ts';
import { themeChanges, tokenColour } from '../state/theme.ts';

type Range = 'hour' | 'day';

const SECONDS: Record<Range, number> = { hour: 3_600, day: 86_400 };
/** The time between two reads of the history. */
const REFRESH_MS = 10_000;
/** In a gap longer than this many steps, no process ran. */
const GAP_STEPS = 2.5;

interface Point {
  at: number;
  cpu: number;
  rssMB: number;
}

/** The values of one kind by time, with a gap wherever no process ran. */
function seriesOf(points: readonly Point[], stepMs: number, value: (point: Point) => number): ChartData {
  const times: number[] = [];
  const values: (number | null)[] = [];
  for (const point of points) {
    const time = point.at / 1_000;
    const before = times.at(-1);
    if (before !== undefined && (time - before) * 1_000 > GAP_STEPS * stepMs) {
      times.push(before + stepMs / 1_000);
      values.push(null);
    }
    times.push(time);
    values.push(value(point));
  }
  return { times, values };
}

/** The history of `name`, and the last measurement at its end. */
function useHistory(name: string, range: Range) {
  const [history, setHistory] = useState<{ points: readonly Point[]; stepMs: number }>({
    points: [],
    stepMs: 10_000,
  });
  useEffect(() => {
    const end = new AbortController();
    const read = async (): Promise<void> => {
      if (document.hidden) return;
      const { points, stepMs } = await client.statsHistory(name, { range, signal: end.signal });
      setHistory({ stepMs, points: points.map(({ at, ...used }) => ({ at: Date.parse(at), ...used })) });
    };
    // If a read fails, the next one follows in ten seconds.
    const refresh = (): void => void read().catch(() => {});
    refresh();
    const timer = setInterval(refresh, REFRESH_MS);
    return () => {
      end.abort();
      clearInterval(timer);
    };
  }, [name, range]);
  return history;
}

/** Marks for the starts, ends and failures of `name`, from the events that the page has. */
function useMarks(name: string): readonly ChartMark[] {
  const events = recentEvents.value;
  return useMemo(
    () =>
      events.flatMap((event): ChartMark[] => {
        const state = eventState(event);
        const { at } = event.data;
        if (state === '' || at === undefined || eventSubject(event) !== name) return [];
        return [{ at: Date.parse(at) / 1_000, isBad: toneOf(state) === 'bad' }];
      }),
    [events, name],
  );
}

interface ChartProps {
  title: string;
  now: string;
  data: ChartData;
  marks: readonly ChartMark[];
  seconds: number;
  format: (value: number) => string;
  /** The smallest top of the scale. */
  least: number;
}

const ignore = (): void => undefined;

function Chart({ title, now, data, marks, seconds, format, least }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const [chart, setChart] = useState<PageChart | null>(null);
  const theme = themeChanges.value;
  useEffect(() => {
    let made: PageChart | null = null;
    let isOver = false;
    void import('../parts/chart.ts').then(({ drawChart }) => {
      if (isOver || !box.current) return;
      const look = {
        line: tokenColour('--accent'),
        fill: tokenColour('--accent-soft'),
        grid: tokenColour('--line'),
        text: tokenColour('--soft'),
        bad: tokenColour('--bad'),
        good: tokenColour('--good'),
      };
      made = drawChart(box.current, look, format, least);
      setChart(made);
      // The daemon may be unreachable now. The charts then appear when the view opens again.
    }, ignore);
    const sizes = new ResizeObserver(() => made?.setWidth(box.current?.clientWidth ?? 0));
    if (box.current) sizes.observe(box.current);
    return () => {
      isOver = true;
      sizes.disconnect();
      made?.dispose();
      setChart(null);
    };
  }, [theme]);
  useEffect(() => {
    const end = Date.now() / 1_000;
    chart?.setData(data, marks, end - seconds, end);
  }, [chart, data, marks, seconds]);
  return (
    <figure class="chart" data-marks={marks.length}>
      <figcaption>
        {title} <span class="number">{now}</span>
      </figcaption>
      <div ref={box} class="chart-box" aria-hidden="true" />
    </figure>
  );
}

/** The charts of the service `name`. */
export function UsageCharts({ name }: { name: string }) {
  const [range, setRange] = useState<Range>('hour');
  const { points, stepMs } = useHistory(name, range);
  const usage = usageOf(name).value;
  const common = { marks: useMarks(name), seconds: SECONDS[range] };
  const [cpu, memory] = useMemo(
    () =>
      [
        seriesOf(points, stepMs, (point) => point.cpu),
        seriesOf(points, stepMs, (point) => point.rssMB),
      ] as const,
    [points, stepMs],
  );
  return (
    <section class="card" aria-labelledby="usage-title">
      <header class="card-title-row">
        <h2 id="usage-title">Usage</h2>
        <fieldset class="chips" aria-label="time shown">
          {(['hour', 'day'] as const).map((one) => (
            <button
              type="button"
              key={one}
              class="chip"
              aria-pressed={range === one}
              onClick={() => setRange(one)}
            >
              {one}
            </button>
          ))}
        </fieldset>
      </header>
      <Chart {...common} title="CPU" now={cpuText(usage?.cpu)} data={cpu} format={cpuText} least={0.05} />
      <Chart
        {...common}
        title="Memory"
        now={memoryText(usage?.rssMB)}
        data={memory}
        format={memoryText}
        least={10}
      />
    </section>
  );
}
