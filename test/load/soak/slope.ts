export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Least squares: what `y` gains for each `x`, and the standard error of that. */
export function slopeOf(points: readonly Point[]): { slope: number; error: number } {
  const [middleX, middleY] = [mean(points.map(({ x }) => x)), mean(points.map(({ y }) => y))];
  const spread = points.reduce((sum, { x }) => sum + (x - middleX) ** 2, 0);
  const slope = points.reduce((sum, { x, y }) => sum + (x - middleX) * (y - middleY), 0) / spread;
  const rest = points.reduce((sum, { x, y }) => sum + (y - middleY - slope * (x - middleX)) ** 2, 0);
  return { slope, error: Math.sqrt(rest / Math.max(1, points.length - 2) / spread) };
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
