// Numbers for people: the twin of `release/page/numbers.py`.
"use strict";
Object.assign(dualquery, (() => {
  const MOST = 4;

  // Decimals of a percentage: the first digit of half its interval, or three digits of its own.
  function decimals(share, low, high) {
    const known = low !== null && low !== undefined && high > low;
    const size = known ? 50 * (high - low) : Math.abs(100 * share);
    if (!(size > 0)) return known ? 1 : 0;
    const first = Math.floor(Math.log10(size) + 1e-9);
    return Math.min(Math.max((known ? 0 : 2) - first, 0), MOST);
  }

  function fixed(share, places) {
    const text = (100 * share).toFixed(places);
    if (share > 0 && Number(text) === 0) return `< ${(10 ** -places).toFixed(places)} %`;
    return `${text} %`;
  }

  function percent(share, low, high) {
    return fixed(share, decimals(share, low, high));
  }

  // The interval in words; empty where the error is unknown.
  function interval(share, low, high) {
    if (low === null || low === undefined) return "";
    const places = decimals(share, low, high);
    return `${(100 * low).toFixed(places)} % to ${(100 * high).toFixed(places)} %`;
  }

  // `± 0.5` in points of a percentage, or both ends where the interval ends at 0 or at 100 %.
  function halfInterval(share, low, high) {
    if (low === null || low === undefined || !(high > low)) return "";
    const places = decimals(share, low, high);
    if (low <= 0 || high >= 1) return `${(100 * low).toFixed(places)}–${(100 * high).toFixed(places)}`;
    return `± ${(50 * (high - low)).toFixed(places)}`;
  }

  // A number of records, as sure as its interval.
  function count(share, low, high, rows) {
    const half = low === null || low === undefined ? 0 : (rows * (high - low)) / 2;
    const step = half >= 10 ? 10 ** Math.floor(Math.log10(half)) : 1;
    return (Math.round((share * rows) / step) * step).toLocaleString("en");
  }

  return {decimals, percent, interval, halfInterval, count};
})());
