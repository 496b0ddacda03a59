// Answers as sentences. Pure functions; no document here.
"use strict";
Object.assign(dualquery, (() => {
  const MOST_NAMED = 4;
  const UNDRAWN = "No drawn query named this column: what is shown about it is not knowledge.";
  const unknownText = (attribute) => `Unknown: no query of this release names ` +
    `${attribute.label}, so it knows nothing about it.`;
  const withUnit = (text, unit) => (unit ? `${text}\u00a0${unit}` : text);

  // Ranges of a column with edges, in words: "Age 65 years or more".
  function rangeWords(attribute, [low, high]) {
    const from = dualquery.grouped(attribute.edges[low]);
    const to = dualquery.grouped(attribute.edges[high + 1]);
    const top = high === attribute.proper - 1;
    if (attribute.temporal) {
      return low === 0 && !top ? `before ${to}` : top && low > 0 ? `from ${from} on`
        : `from ${from} to ${top ? "" : "before "}${to}`;
    }
    if (top && low > 0) return `${withUnit(from, attribute.unit)} or more`;
    if (low === 0 && !top) return `under ${withUnit(to, attribute.unit)}`;
    return `${from} to ${top ? "" : "under "}${withUnit(to, attribute.unit)}`;
  }

  // What a literal says: "Age 65 or more", "Smoker: yes", "Region: not north".
  function literalWords(attribute, codes, negated) {
    const proper = codes.filter((code) => code < attribute.proper), parts = [];
    if (attribute.edges) {
      for (const run of dualquery.runsOf(proper)) parts.push(rangeWords(attribute, run));
    } else {
      const groups = proper.length === codes.length && dualquery.groupsOf(attribute, codes);
      if (groups) parts.push(...groups.map((name) => `group ${name}`));
      else if (proper.length > MOST_NAMED) parts.push(`one of ${proper.length} values`);
      else parts.push(...proper.map((code) => dualquery.labelOf(attribute, code)));
    }
    if (proper.length < codes.length) parts.push(dualquery.labelOf(attribute, attribute.proper));
    const colon = attribute.edges && !negated && proper.length ? "" : ":";
    return `${attribute.label}${colon} ${negated ? "not " : ""}${listed(parts, "or")}`;
  }

  function listed(parts, word) {
    if (parts.length < 2) return parts.join("");
    return `${parts.slice(0, -1).join(", ")} ${word} ${parts[parts.length - 1]}`;
  }

  // The records of a condition: "people with Age 65 or more and Region: north".
  function groupWords(model, where) {
    if (!where.length) return model.people;
    const parts = where.map((l) => literalWords(model.attributes[l.attribute], l.codes, l.negated));
    return `${model.people} with ${listed(parts, "and")}`;
  }

  // Figures as text, each kind with the digits that its interval bears.
  const percents = {
    value: (f) => dualquery.percent(f.value, f.low, f.high),
    range: (f) => {
      if (f.low === null) return "";
      const places = dualquery.decimals(f.value, f.low, f.high);
      return `${(100 * f.low).toFixed(places)}–${(100 * f.high).toFixed(places)}`;
    },
    half: (f) => dualquery.halfInterval(f.value, f.low, f.high),
  };

  const countsOf = (rows) => ({
    value: (f) => dualquery.amount(f.value * rows, times(f.low, rows), times(f.high, rows), 0),
    range: (f) => (f.low === null ? ""
      : `${[f.low, f.high].map((end) => dualquery.amount(end * rows, f.low * rows, f.high * rows, 0))
        .join("–")}`),
    half: (f) => (f.low === null || !(f.high > f.low) ? ""
      : `± ${dualquery.amount((rows * (f.high - f.low)) / 2, f.low * rows, f.high * rows, 0)}`),
  });
  const times = (end, rows) => (end === null ? null : end * rows);

  const amountsOf = (unit) => ({
    value: (f) => withUnit(dualquery.amount(f.value, f.low, f.high), unit),
    range: (f) => (f.low === null ? ""
      : [f.low, f.high].map((end) => dualquery.amount(end, f.low, f.high)).join("–")),
    half: (f) => (f.low === null || !(f.high > f.low) ? ""
      : [f.low, f.high].map((end) => dualquery.amount(end, f.low, f.high)).join("–")),
  });

  return {UNDRAWN, unknownText, literalWords, groupWords, listed, percents, countsOf, amountsOf};
})());
