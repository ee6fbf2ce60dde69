// A chart over time. A file of its own, which the page loads with the first chart.
import uPlot from 'uplot';

/** How a chart looks. */
export interface ChartLook {
  line: string;
  fill: string;
  grid: string;
  text: string;
  /** Of the marks of events. */
  bad: string;
  good: string;
}

/** An event on the time axis of a chart. */
export interface ChartMark {
  /** In seconds since the epoch. */
  at: number;
  /** A failure is a line with a cross, anything else a line alone. */
  isBad: boolean;
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
  setData(data: ChartData, marks: readonly ChartMark[], from: number, to: number): void;
  setWidth(width: number): void;
  dispose(): void;
}

const HEIGHT = 110;
/** Half the width of the cross of a mark. */
const CROSS_PX = 3;
const AXIS_WIDTH = 58;
const FONT = '11px system-ui, sans-serif';

const hourText = (seconds: number): string => {
  const at = new Date(seconds * 1_000);
  return `${String(at.getHours()).padStart(2, '0')}:${String(at.getMinutes()).padStart(2, '0')}`;
};

const dataOf = ({ times, values }: ChartData): uPlot.AlignedData => [[...times], [...values]];

/** Draws `marks` over the plot of `chart`. */
function drawMarks({ ctx, bbox, valToPos }: uPlot, marks: readonly ChartMark[], look: ChartLook): void {
  const { left, top, width, height } = bbox;
  const cross = CROSS_PX * devicePixelRatio;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  for (const { at, isBad } of marks) {
    const x = Math.round(valToPos(at, 'x', true));
    if (x < left || x > left + width) continue;
    ctx.strokeStyle = isBad ? look.bad : look.good;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    if (isBad) {
      ctx.moveTo(x - cross, top - cross);
      ctx.lineTo(x + cross, top + cross);
      ctx.moveTo(x + cross, top - cross);
      ctx.lineTo(x - cross, top + cross);
    }
    ctx.stroke();
  }
  ctx.restore();
}

/** Draws a chart into `parent`. `format` writes a value with its unit; `least`: of the top of its scale. */
export function drawChart(
  parent: HTMLElement,
  look: ChartLook,
  format: (value: number) => string,
  least: number,
): PageChart {
  let range: [number, number] = [0, 1];
  let marks: readonly ChartMark[] = [];
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
      hooks: { draw: [(drawn) => drawMarks(drawn, marks, look)] },
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
    setData: (data, shown, from, to) => {
      range = [from, to];
      marks = shown;
      chart.setData(dataOf(data));
    },
    setWidth: (width) => chart.setSize({ width, height: HEIGHT }),
    dispose: () => chart.destroy(),
  };
}
