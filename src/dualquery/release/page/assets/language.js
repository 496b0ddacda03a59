// Attributes, and queries as text: the twin of `format_query` and of the labels of `table`.
"use strict";
const dualquery = {};
Object.assign(dualquery, (() => {
  // A 0/1 column of which nothing is said comes as its name alone.
  function attributeOf(entry) {
    if (typeof entry === "string") entry = {name: entry, binary: true};
    const binary = !!entry.binary;
    const values = binary ? ["0", "1"] : entry.values || null;
    const edges = entry.edges || null;
    const proper = edges ? edges.length - 1 : values.length;
    return {name: entry.name, values, edges, missing: !!entry.missing, ordered: !!entry.ordered,
            binary, proper, size: proper + (entry.missing ? 1 : 0), groups: entry.groups || null,
            groupOf: entry.group_of || null, label: entry.label || entry.name,
            words: entry.words || {}, unit: entry.unit || "", numbers: entry.numbers || null,
            temporal: !!entry.temporal,
            sequence: !!(edges || entry.ordered), yesNo: binary || !!entry.yes_no};
  }

  // A long number with commas; years, dates and short numbers as they are.
  function grouped(text) {
    const found = /^(-?)(\d{5,})(\.\d+)?$/.exec(text);
    if (!found) return text;
    return found[1] + found[2].replace(/\B(?=(\d{3})+$)/g, ",") + (found[3] || "");
  }

  // What a code is called: its label, yes or no, a range, or the value itself.
  function labelOf(attribute, code) {
    const said = attribute.words[code];
    if (said) return said;
    if (code === attribute.proper) return "missing";
    if (attribute.yesNo) return code ? "yes" : "no";
    if (!attribute.edges) return attribute.values[code];
    const open = code === attribute.proper - 1 ? "" : "<";
    const [low, high] = [attribute.edges[code], attribute.edges[code + 1]].map(grouped);
    return `${low}\u00a0to\u00a0${open}${high}`;
  }

  // The query language. White space is what Python's \s takes for it.
  const WORD = new RegExp(
    "^[^\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000" +
    "\"&|,(){}\\[\\]=<>!]+$");

  function quote(text) {
    return WORD.test(text) && !["in", "is", "not"].includes(text) ? text : JSON.stringify(text);
  }

  function cell(attribute, code) {
    const value = attribute.values[code];
    return attribute.missing && value === "missing" ? '"missing"' : quote(value);
  }

  function bins(attribute, low, high) {
    const close = high === attribute.proper - 1 ? "]" : ")";
    return `[${attribute.edges[low]},${attribute.edges[high + 1]}${close}`;
  }

  function runsOf(codes) {
    const runs = [];
    for (const code of codes) {
      const last = runs[runs.length - 1];
      if (last && last[1] === code - 1) last[1] = code;
      else runs.push([code, code]);
    }
    return runs;
  }

  // The declared groups that the codes are, all of their values and no others; else null.
  function groupsOf(attribute, codes) {
    if (!attribute.groups || codes.length < 2) return null;
    const chosen = new Set(codes.map((code) => attribute.groupOf[code]));
    const members = attribute.groupOf.filter((group) => chosen.has(group)).length;
    return members === codes.length ? [...chosen].map((group) => attribute.groups[group]) : null;
  }

  function formatLiteral(literal, attributes) {
    const attribute = attributes[literal.attribute];
    const name = quote(attribute.name), negated = !!literal.negated;
    const codes = [...literal.codes].sort((a, b) => a - b);
    const missing = attribute.missing ? attribute.proper : -1;
    if (codes.length === 1 && codes[0] === missing) {
      return `${name} is ${negated ? "not " : ""}missing`;
    }
    const membership = `${name} ${negated ? "not in" : "in"} `;
    const proper = codes.filter((code) => code !== missing);
    const holdsMissing = proper.length < codes.length;
    let items;
    if (attribute.edges) {
      const runs = runsOf(proper);
      if (runs.length === 1 && !holdsMissing) {
        const [low, high] = runs[0];
        if (!negated && high === attribute.proper - 1 && low > 0) {
          return `${name}>=${attribute.edges[low]}`;
        }
        if (!negated && low === 0 && high < attribute.proper - 1) {
          return `${name}<${attribute.edges[high + 1]}`;
        }
        return membership + bins(attribute, low, high);
      }
      items = runs.map(([low, high]) => bins(attribute, low, high));
    } else {
      const whole = holdsMissing ? null : groupsOf(attribute, proper);
      if (whole) return `${membership}group(${whole.map((g) => quote(g)).join(", ")})`;
      if (codes.length === 1) return `${name}${negated ? "!=" : "="}${cell(attribute, codes[0])}`;
      items = proper.map((code) => cell(attribute, code));
    }
    if (holdsMissing) items.push("missing");
    return `${membership}{${items.join(", ")}}`;
  }

  // Literals that all hold.
  function formatQuery(literals, attributes) {
    return literals.map((literal) => formatLiteral(literal, attributes)).join(" & ");
  }

  // Attributes whose label or name holds the text: those that begin with it first.
  function search(attributes, text, most, fits = () => true) {
    const wanted = text.trim().toLowerCase();
    const first = [], later = [];
    let count = 0;
    attributes.forEach((attribute, i) => {
      const places = [attribute.label, attribute.name].map((t) => t.toLowerCase().indexOf(wanted));
      if (Math.max(...places) < 0 || !fits(i)) return;
      count += 1;
      if (places.includes(0)) { if (first.length < most) first.push(i); }
      else if (later.length < most) later.push(i);
    });
    return {count, found: first.concat(later).slice(0, most)};
  }

  // What a code stands for in a table of figures: `release.asking.labels` has the same words.
  function cellText(attribute, code) {
    if (code === attribute.proper) return "";
    return attribute.edges ? bins(attribute, code, code) : attribute.values[code];
  }

  return {attributeOf, labelOf, formatQuery, search, cellText, quote, grouped, runsOf, groupsOf};
})());
