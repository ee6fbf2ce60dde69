// Metrics as text, in the format of OpenMetrics 1.0 or the older one of Prometheus.

/** One value of a metric. */
export interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number;
  /** Of a histogram: `_bucket`, `_sum` or `_count`. */
  part?: string;
}

/** A metric of readings `R`, under its name without the `_total` of a counter. */
export interface Metric<R> {
  name: string;
  type: 'gauge' | 'counter' | 'histogram';
  help: string;
  samples: (reading: R) => Sample[];
}

export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

const ESCAPED: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' };
const escapeValue = (text: string): string =>
  text.replace(/[\\"\n]/g, (character) => ESCAPED[character] ?? '');

function labelsText(labels: Sample['labels']): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeValue(value)}"`);
  return pairs.length > 0 ? `{${pairs.join(',')}}` : '';
}

/**
 * Formats `metrics` at `reading`. `isOpen`: as OpenMetrics, in which families are named without `_total` and
 * the text has an end marker.
 */
export function metricsText<R>(metrics: readonly Metric<R>[], reading: R, isOpen: boolean): string {
  const lines: string[] = [];
  for (const { name, type, help, samples } of metrics) {
    const sampleName = type === 'counter' ? `${name}_total` : name;
    const family = isOpen ? name : sampleName;
    lines.push(`# HELP ${family} ${help}`, `# TYPE ${family} ${type}`);
    for (const { labels, value, part = '' } of samples(reading))
      lines.push(`${sampleName}${part}${labelsText(labels)} ${value}`);
  }
  if (isOpen) lines.push('# EOF');
  return `${lines.join('\n')}\n`;
}
