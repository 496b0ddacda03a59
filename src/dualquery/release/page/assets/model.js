// What a release can be asked, in the page itself: the twin of `release/components.py` (how tables
// are packed), of `Release.answer` and of `format_query`. Pure functions; no document here.
"use strict";
const dualquery = (() => {
  const FIXED = 2 ** 48 - 1;

  function bytesOf(text) {
    const raw = atob(text);
    const found = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
    return found;
  }

  // A 0/1 column comes as its name alone.
  function attributeOf(entry) {
    if (typeof entry === "string") {
      return {name: entry, values: ["0", "1"], edges: null, missing: false, ordered: false,
              binary: true, proper: 2, size: 2};
    }
    const edges = entry.edges || null;
    const proper = edges ? edges.length - 1 : entry.values.length;
    return {name: entry.name, values: entry.values || null, edges, missing: !!entry.missing,
            ordered: !!entry.ordered, binary: false, proper, size: proper + (entry.missing ? 1 : 0)};
  }

  function labelOf(attribute, code) {
    if (code === attribute.proper) return "missing";
    if (!attribute.edges) return attribute.values[code];
    const open = code === attribute.proper - 1 ? "" : "<";
    return `${attribute.edges[code]}\u00a0to\u00a0${open}${attribute.edges[code + 1]}`;
  }

  class Model {
    constructor(payload) {
      this.attributes = payload.attributes.map(attributeOf);
      this.total = payload.total;
      this.kind = payload.kind;
      this.rows = payload.rows;
      this.components = payload.components;
      this.weights = new Float64Array(bytesOf(payload.weights).buffer);
      this.data = bytesOf(payload.data);
      this.uncertainty = payload.uncertainty;
      this.examples = payload.examples;
      this.drawnBits = bytesOf(payload.drawn);
      this.knownBits = bytesOf(payload.known);
      this.offsets = new Float64Array(this.attributes.length + 1);
      this.attributes.forEach((attribute, i) => {
        this.offsets[i + 1] = this.offsets[i] + this.packedSize(attribute.size);
      });
    }

    // Whether any query of the release names the attribute; if none does, nothing is known.
    known(position) {
      return ((this.knownBits[position >> 3] >> (position & 7)) & 1) === 1;
    }

    // Whether any drawn query named the attribute; of others the release knows nothing.
    drawn(position) {
      return ((this.drawnBits[position >> 3] >> (position & 7)) & 1) === 1;
    }

    packedSize(size) {
      const K = this.components;
      if (this.kind === "mixture") return 6 * K * (size - 1);
      return size <= 2 ? Math.ceil(K / 8) : size <= 256 ? K : size <= 65536 ? 2 * K : 4 * K;
    }

    // Probabilities of one attribute's codes: entry k·size + c is component k's of code c.
    table(position) {
      const size = this.attributes[position].size, K = this.components;
      const table = new Float64Array(K * size);
      let at = this.offsets[position];
      for (let k = 0; k < K; k++) {
        if (this.kind === "mixture") {
          let rest = 1;
          for (let c = 1; c < size; c++, at += 6) {
            const low = this.data[at] + 256 * (this.data[at + 1] + 256 * this.data[at + 2]);
            const high = this.data[at + 3] + 256 * (this.data[at + 4] + 256 * this.data[at + 5]);
            const p = (low + 16777216 * high) / FIXED;
            table[k * size + c] = p;
            rest -= p;
          }
          table[k * size] = Math.max(rest, 0);
        } else {
          let code;
          if (size <= 2) code = (this.data[at + (k >> 3)] >> (k & 7)) & 1;
          else if (size <= 256) code = this.data[at + k];
          else if (size <= 65536) code = this.data[at + 2 * k] + 256 * this.data[at + 2 * k + 1];
          else {
            const low = this.data[at + 4 * k] + 256 * this.data[at + 4 * k + 1];
            code = low + 65536 * (this.data[at + 4 * k + 2] + 256 * this.data[at + 4 * k + 3]);
          }
          table[k * size + code] = 1;
        }
      }
      return table;
    }

    // Per component the probability that a literal holds.
    masses(literal) {
      const size = this.attributes[literal.attribute].size;
      const table = this.table(literal.attribute);
      const found = new Float64Array(this.components);
      for (let k = 0; k < this.components; k++) {
        let sum = 0;
        for (const code of literal.codes) sum += table[k * size + code];
        found[k] = literal.negated ? 1 - sum : sum;
      }
      return found;
    }

    // Per component its weight times the probability that the query holds.
    posterior(query) {
      const parity = query.kind === "parity";
      const product = new Float64Array(this.components).fill(1);
      for (const literal of query.literals) {
        const masses = this.masses(literal);
        for (let k = 0; k < this.components; k++) {
          product[k] *= parity ? 1 - 2 * masses[k] : masses[k];
        }
      }
      return product.map((p, k) => this.weights[k] * (parity ? (1 + p) / 2 : p));
    }

    answer(query) {
      return this.posterior(query).reduce((sum, part) => sum + part, 0);
    }

    // The standard error of an answer, where the release states one and the draws named all of
    // the query's attributes; never a guess.
    error(query, answer) {
      if (!this.uncertainty || !query.literals.every((l) => this.drawn(l.attribute))) return null;
      const {places, rows} = this.uncertainty;
      const row = rows[Math.min(query.literals.length, rows.length) - 1];
      const at = Math.log(Math.max(Math.min(answer, 1 - answer), 1e-6));
      if (at <= places[0]) return Math.exp(row[0]);
      for (let i = 1; i < places.length; i++) {
        if (at <= places[i]) {
          const share = (at - places[i - 1]) / (places[i] - places[i - 1]);
          return Math.exp(row[i - 1] + share * (row[i] - row[i - 1]));
        }
      }
      return Math.exp(row[row.length - 1]);
    }

    // The distribution of one attribute among the records that satisfy a query, or null where
    // there are none. An attribute of a conjunction is restricted to what its literal allows.
    distribution(position, query) {
      const size = this.attributes[position].size;
      const own = query.literals.find((literal) => literal.attribute === position);
      if (own && query.kind === "parity") return null;
      const others = {kind: query.kind, literals: query.literals.filter((l) => l !== own)};
      const weights = this.posterior(others), table = this.table(position);
      const found = new Float64Array(size);
      for (let k = 0; k < this.components; k++) {
        for (let c = 0; c < size; c++) found[c] += weights[k] * table[k * size + c];
      }
      if (own) {
        for (let c = 0; c < size; c++) if (own.codes.includes(c) === own.negated) found[c] = 0;
      }
      const sum = found.reduce((a, b) => a + b, 0);
      return sum > 1e-15 ? Array.from(found, (p) => p / sum) : null;
    }
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

  function formatLiteral(literal, attributes, brief) {
    const attribute = attributes[literal.attribute];
    const name = quote(attribute.name), negated = !!literal.negated;
    const codes = [...literal.codes].sort((a, b) => a - b);
    const missing = attribute.missing ? attribute.proper : -1;
    if (attribute.binary && codes.length === 1 && codes[0] === 1 && brief && !negated) return name;
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
      if (codes.length === 1) return `${name}${negated ? "!=" : "="}${cell(attribute, codes[0])}`;
      items = proper.map((code) => cell(attribute, code));
    }
    if (holdsMissing) items.push("missing");
    return `${membership}{${items.join(", ")}}`;
  }

  function formatQuery(query, attributes) {
    if (query.kind === "parity") {
      return `parity(${query.literals.map((l) => formatLiteral(l, attributes, true)).join(", ")})`;
    }
    return query.literals.map((l) => formatLiteral(l, attributes, false)).join(" & ");
  }

  // Attributes whose name holds the text: those that begin with it first, at most `most`.
  function search(attributes, text, most) {
    const wanted = text.trim().toLowerCase();
    const first = [], later = [];
    let count = 0;
    attributes.forEach((attribute, i) => {
      const place = attribute.name.toLowerCase().indexOf(wanted);
      if (place < 0) return;
      count += 1;
      if (place === 0) { if (first.length < most) first.push(i); }
      else if (later.length < most) later.push(i);
    });
    return {count, found: first.concat(later).slice(0, most)};
  }

  return {Model, attributeOf, labelOf, formatQuery, search};
})();
