// A chart over time. The page loads this separate file with the first chart.
import uPlot from 'uplot';

/** The colours of a chart. */
export interface ChartLook {
  line: string;
  fill: string;
  grid: string;
  text: string;
  /** The colours of event marks. */
  bad: string;
  good: string;
}

/** An event on the time axis of a chart. */
export interface ChartMark {
  /** In seconds since the epoch. */
  at: number;
  /** Whether it is a failure, drawn as a line with a cross. Other events are only a line. */
  isBad: boolean;
}

/** The data of a chart. */
export interface ChartData {
  /** In seconds since the epoch, ascending. */
  times: readonly number[];
  /** null: no process ran. */
  values: readonly (number | null)[];
}

/** A chart in the page. */
export interface PageChart {
  setData(data: ChartData, marks: readonly ChartMark[], from: number, to: number): void;
  setWidth(width: number): void;
  dispose(): void;
}

const HEIGHT = 110;
/** Half the width of a mark's cross. */
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

/** Draws a chart into `parent`. `format` adds the unit to a value; `least`: the lowest top of the scale. */
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
