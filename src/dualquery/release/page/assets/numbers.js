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

  // A number as sure as its interval: the first digit of half of it is the last that is shown.
  function amount(value, low, high, most = MOST) {
    const known = low !== null && low !== undefined && high > low;
    const size = known ? (high - low) / 2 : Math.abs(value) / 100;
    const first = size > 0 ? Math.floor(Math.log10(size) + 1e-9) : 0;
    if (first > 0 && known) return grouped((Math.round(value / 10 ** first) * 10 ** first).toFixed(0));
    return grouped(value.toFixed(Math.min(Math.max(-first, 0), most)));
  }

  // The text of a number, with commas if it is long.
  function grouped(text) {
    const [whole, rest] = text.split(".");
    if (whole.replace("-", "").length < 5) return text;
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
  }

  return {decimals, percent, interval, halfInterval, amount};
})());
