// A chart over time. A file of its own, which the page loads with the first chart.
import uPlot from 'uplot';

/** How a chart looks. */
export interface ChartLook {
  line: string;
  fill: string;
  grid: string;
  text: string;
}

/** What a chart shows. */
export interface ChartData {
  /** In seconds since the epoch, ascending. */
  times: readonly number[];
  /** null: nothing ran. */
  values: readonly (number | null)[];
}

/** A chart in the page. */
export interface PageChart {
  setData(data: ChartData, from: number, to: number): void;
  setWidth(width: number): void;
  dispose(): void;
}

const HEIGHT = 110;
const AXIS_WIDTH = 58;
const FONT = '11px system-ui, sans-serif';

const hourText = (seconds: number): string => {
  const at = new Date(seconds * 1_000);
  return `${String(at.getHours()).padStart(2, '0')}:${String(at.getMinutes()).padStart(2, '0')}`;
};

const dataOf = ({ times, values }: ChartData): uPlot.AlignedData => [[...times], [...values]];

/** Draws a chart into `parent`. `format` writes a value with its unit; `least`: of the top of its scale. */
export function drawChart(
  parent: HTMLElement,
  look: ChartLook,
  format: (value: number) => string,
  least: number,
): PageChart {
  let range: [number, number] = [0, 1];
  const axis = {
    font: FONT,
    stroke: look.text,
    grid: { stroke: look.grid, width: 1 },
    ticks: { show: false },
  };
  const chart = new uPlot(
    {
      width: parent.clientWidth,
      height: HEIGHT,
      padding: [8, 20, 0, 0],
      cursor: { y: false, drag: { setScale: false } },
      legend: { show: false },
      scales: {
        x: { time: true, range: () => range },
        y: { range: (_chart, _low, high) => [0, Math.max(least, high * 1.1)] },
      },
      axes: [
        { ...axis, size: 22, space: 70, values: (_chart, times) => times.map(hourText) },
        { ...axis, size: AXIS_WIDTH, space: 28, values: (_chart, values) => values.map(format) },
      ],
      series: [
        {},
        { stroke: look.line, fill: look.fill, width: 1.5, points: { show: false }, spanGaps: false },
      ],
    },
    [[], []],
    parent,
  );
  return {
    setData: (data, from, to) => {
      range = [from, to];
      chart.setData(dataOf(data));
    },
    setWidth: (width) => chart.setSize({ width, height: HEIGHT }),
    dispose: () => chart.destroy(),
  };
}
