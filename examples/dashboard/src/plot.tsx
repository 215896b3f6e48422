import { useEffect, useRef, useState } from 'react';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { shortDay, wholeMoney } from './words.ts';

export interface Point {
  /** Seconds since 1970. */
  readonly at: number;
  readonly sum: number;
}

const HEIGHT = 220;
/** Between two dates on the axis, in seconds. */
const STEPS = [1, 2, 7, 14, 30, 90, 365].map((days) => days * 86_400);
const dark = matchMedia('(prefers-color-scheme: dark)');

/** A line over time. For those who do not see it there is its label. */
export function Plot({ points, label }: { readonly points: readonly Point[]; readonly label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const isDark = useDark();

  // The canvas knows no colours of the page: it is drawn anew when they change.
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const data: UPlot.AlignedData = [points.map(({ at }) => at), points.map(({ sum }) => sum)];
    const plot = new UPlot(optionsFor(element), data, element);
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [points, isDark]);

  return <div ref={place} className="plot" role="img" aria-label={label} />;
}

function useDark(): boolean {
  const [isDark, setDark] = useState(dark.matches);
  useEffect(() => {
    const changed = () => setDark(dark.matches);
    dark.addEventListener('change', changed);
    return () => dark.removeEventListener('change', changed);
  }, []);
  return isDark;
}

function optionsFor(element: HTMLElement): UPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name);
  const axis = {
    stroke: colour('--plot-text'),
    grid: { stroke: colour('--plot-grid'), width: 1 },
    ticks: { show: false },
    font: `12px ${style.fontFamily}`,
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    axes: [
      { ...axis, size: 28, incrs: STEPS, values: (_, times) => times.map(shortDay) },
      { ...axis, size: 56, values: (_, amounts) => amounts.map(wholeMoney) },
    ],
    series: [{}, { stroke: colour('--plot-line'), fill: colour('--plot-fill'), width: 2, points: { show: false } }],
  };
}
