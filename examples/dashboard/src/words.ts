const dollars = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' });
const days = new Intl.DateTimeFormat('en', { dateStyle: 'medium' });
const minutes = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });
const times = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hourCycle: 'h23' });
const months = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric' });
const shortDays = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric' });
const wholeDollars = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumFractionDigits: 0 });

export const money = (amount: number) => dollars.format(amount);
export const day = (time: string) => written(days, time);
export const dayAndTime = (time: string) => written(minutes, time);
/** Of milliseconds since 1970. */
export const clock = (at: number) => times.format(new Date(at));
export const month = (time: string) => written(months, time);
/** Of seconds since 1970. */
export const shortDay = (seconds: number) => shortDays.format(new Date(seconds * 1000));
export const wholeMoney = (amount: number) => wholeDollars.format(amount);
export const milliseconds = (ms: number) => `${Math.round(ms).toLocaleString('en')} ms`;

/** What is no time is shown as it came. */
function written(format: Intl.DateTimeFormat, time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : format.format(date);
}

/** `first_time_value_off` is “First time value off”. */
export function spoken(name: string | null): string {
  const words = (name ?? '').replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
