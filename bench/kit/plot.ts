// Draws the last run: every ratio on one axis, and below it a small chart for each cost measured by size.
import type { Row } from './harness.ts';
import type { Run } from './measured_run.ts';
import type { Targets } from './targets.ts';

const WIDTH = 960;
const LINE = 15;
const LEFT = 330;
const RIGHT = 60;
const TOP = 40;
/** The ends of the ratio axis, which is logarithmic. */
const LEAST = 0.1;
const MOST = 100;
const TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];
const CHART = { width: 228, height: 160, perLine: 4, left: 22, right: 26, top: 48, bottom: 22 };
const GOOD = '#1a7f37';
const SHORT = '#0969da';
const BAD = '#cf222e';

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const text = (x: number, y: number, content: string, more = ''): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${escaped(content)}</text>`;

const line = (x1: number, y1: number, x2: number, y2: number, more: string): string =>
  `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" ${more}/>`;

const xOf = (ratio: number): number => {
  const within = Math.min(MOST, Math.max(LEAST, ratio));
  const share = Math.log(within / LEAST) / Math.log(MOST / LEAST);
  return LEFT + share * (WIDTH - LEFT - RIGHT);
};

/** One ratio: a dot with its spread, and a mark at its bound. */
function ratioLine(row: Row, y: number, bound: number | undefined): string {
  const isMissed = bound !== undefined && row.ratio < bound;
  const colour = isMissed ? BAD : row.ratio >= 1 ? GOOD : SHORT;
  const parts = [
    text(LEFT - 8, y + 4, row.name, 'text-anchor="end"'),
    line(xOf(row.least), y, xOf(row.greatest), y, `stroke="${colour}" stroke-width="2" opacity="0.45"`),
    `<circle cx="${xOf(row.ratio).toFixed(1)}" cy="${y}" r="3.5" fill="${colour}"/>`,
    text(WIDTH - RIGHT + 8, y + 4, row.ratio.toFixed(2)),
  ];
  if (bound !== undefined)
    parts.push(line(xOf(bound), y - 5, xOf(bound), y + 5, 'stroke="#57606a" stroke-width="2"'));
  return parts.join('');
}

function ratios(run: Run, targets: Targets): { svg: string; bottom: number } {
  let y = TOP;
  const parts: string[] = [];
  for (const [name, { rows }] of Object.entries(run.results)) {
    const plain = rows.filter(({ curve }) => !curve);
    if (plain.length === 0) continue;
    y += LINE * 1.4;
    parts.push(text(LEFT - 8, y + 4, name, 'text-anchor="end" font-weight="bold"'));
    for (const row of plain) {
      y += LINE;
      parts.push(ratioLine(row, y, targets[name]?.[row.name]?.ratio));
    }
  }
  const bottom = y + LINE;
  const grid = TICKS.map((tick) => {
    const colour = tick === 1 ? 'stroke="#24292f" stroke-width="1.2"' : 'stroke="#d0d7de"';
    return (
      line(xOf(tick), TOP, xOf(tick), bottom, colour) +
      text(xOf(tick), TOP - 6, String(tick), 'text-anchor="middle"')
    );
  });
  const title = text(
    LEFT,
    16,
    'Ratio to the floor, logarithmic: 1 is the floor itself, more is better; | is the bound',
  );
  return { svg: [title, ...grid, ...parts].join('\n'), bottom };
}

interface Curve {
  name: string;
  unit: string;
  points: { size: number; value: number }[];
}

/**
 * The curves of a run. The first point of each is its smallest size, which has no row: it is only a floor.
 */
function curvesOf(run: Run): Curve[] {
  const curves = new Map<string, Curve>();
  for (const { rows } of Object.values(run.results)) {
    for (const { curve, unit, subject, floor } of rows) {
      if (!curve) continue;
      const found = curves.get(curve.name) ?? { name: curve.name, unit, points: [] };
      if (found.points.length === 0 && curve.before !== null)
        found.points.push({ size: curve.before, value: floor });
      found.points.push({ size: curve.size, value: subject });
      curves.set(curve.name, found);
    }
  }
  return [...curves.values()];
}

const short = (size: number): string => (size >= 1_000 ? `${size / 1_000}k` : String(size));
const digits = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(2));

/** Sizes are spaced evenly; values begin at 0. */
function chart({ name, unit, points }: Curve, left: number, top: number): string {
  const { width, height } = CHART;
  const most = Math.max(...points.map(({ value }) => value));
  const x = (index: number): number =>
    left + CHART.left + (index / Math.max(1, points.length - 1)) * (width - CHART.left - CHART.right);
  const y = (value: number): number =>
    top + height - CHART.bottom - (value / most) * (height - CHART.top - CHART.bottom);
  const path = points.map(({ value }, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  return [
    text(left + 8, top + 12, name, 'font-weight="bold"'),
    line(left + CHART.left, y(0), left + width - CHART.right, y(0), 'stroke="#d0d7de"'),
    `<polyline points="${path}" fill="none" stroke="${SHORT}" stroke-width="2"/>`,
    ...points.flatMap(({ size, value }, index) => [
      `<circle cx="${x(index).toFixed(1)}" cy="${y(value).toFixed(1)}" r="3" fill="${SHORT}"/>`,
      text(x(index), y(value) - 6, digits(value), 'text-anchor="middle"'),
      text(x(index), top + height - 8, short(size), 'text-anchor="middle" fill="#57606a"'),
    ]),
    text(left + 8, top + 24, unit, 'fill="#57606a" font-size="9"'),
  ].join('');
}

/** Draws a run as SVG. */
export function plot(run: Run, targets: Targets): string {
  const { svg, bottom } = ratios(run, targets);
  const curves = curvesOf(run);
  const charts = curves.map((curve, index) => {
    const column = index % CHART.perLine;
    const row = Math.floor(index / CHART.perLine);
    return chart(curve, 12 + column * (CHART.width + 8), bottom + 40 + row * (CHART.height + 12));
  });
  const height = bottom + 50 + Math.ceil(curves.length / CHART.perLine) * (CHART.height + 12);
  const title = curves.length > 0 ? text(22, bottom + 26, 'What one unit costs, by size') : '';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${Math.ceil(height)}" font-family="system-ui, sans-serif" font-size="11" fill="#24292f">`,
    '<title>The last run: every ratio to its floor, and what one unit costs by size</title>',
    `<rect width="${WIDTH}" height="${Math.ceil(height)}" fill="#ffffff"/>`,
    svg,
    title,
    ...charts,
    '</svg>\n',
  ].join('\n');
}
