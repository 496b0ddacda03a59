// What a release answers from, in the page itself: the twin of `release/components.py` (how tables
// are packed) and of `Release.answer` for conjunctions. Pure functions; no document here.
"use strict";
Object.assign(dualquery, (() => {
  const FIXED = 2 ** 48 - 1;

  function bytesOf(text) {
    const raw = atob(text);
    const found = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) found[i] = raw.charCodeAt(i);
    return found;
  }

  const numbersOf = (text) => new Float64Array(bytesOf(text).buffer);

  class Model {
    constructor(payload) {
      this.attributes = payload.attributes.map(dualquery.attributeOf);
      this.total = payload.total;
      this.kind = payload.kind;
      this.rows = payload.rows;
      this.people = payload.people;
      this.source = payload.source;
      this.description = payload.description;
      this.components = payload.components;
      this.weights = numbersOf(payload.weights);
      this.data = bytesOf(payload.data);
      this.uncertainty = payload.uncertainty;
      this.togetherBits = payload.together && bytesOf(payload.together);
      this.first = payload.first;
      this.drawnBits = bytesOf(payload.drawn);
      this.knownBits = bytesOf(payload.known);
      this.offsets = new Float64Array(this.attributes.length + 1);
      this.attributes.forEach((attribute, i) => {
        this.offsets[i + 1] = this.offsets[i] + this.packedSize(attribute.size);
      });
      this.forest = payload.edges && new dualquery.Forest(
        payload.edges, this.attributes.map((a) => a.size), (position) => this.own(position));
      this.owns = new Map();
      this.kept = new Map();  // atoms of questions asked before
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
      if (!this.forest || this.forest.parent[position] < 0) return this.own(position);
      return this.forest.table(position, this.components);
    }

    // Components, weights and tables for questions about these attributes, which are independent
    // in each component.
    among(attributes) {
      const roots = this.forest ? attributes.map((a) => this.forest.root(a)) : [];
      if (new Set(roots).size < roots.length) return this.forest.unrolled(this, attributes);
      const tables = new Map(attributes.map((a) => [a, this.table(a)]));
      return {components: this.components, weights: this.weights, tables};
    }

    // The same before its parent moves it, as the release keeps it.
    own(position) {
      if (this.forest && this.owns.has(position)) return this.owns.get(position);
      if (this.last && this.last.position === position) return this.last.table;
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
      this.last = {position, table};
      if (this.forest) this.owns.set(position, table);
      return table;
    }

    // Per component the probability that a literal holds.
    masses(literal, among) {
      const size = this.attributes[literal.attribute].size;
      const table = among.tables.get(literal.attribute);
      const found = new Float64Array(among.components);
      for (let k = 0; k < among.components; k++) {
        let sum = 0;
        for (const code of literal.codes) sum += table[k * size + code];
        found[k] = literal.negated ? 1 - sum : sum;
      }
      return found;
    }

    // The share of the records for which all literals hold, each on an attribute of its own.
    answer(literals) {
      const among = this.among(literals.map((literal) => literal.attribute));
      const product = Float64Array.from(among.weights);
      for (const literal of literals) {
        const masses = this.masses(literal, among);
        for (let k = 0; k < among.components; k++) product[k] *= masses[k];
      }
      return product.reduce((sum, part) => sum + part, 0);
    }

    // The standard error of the share of a conjunction of these attributes; NaN where the release
    // states none, or no draw named one of them: never a guess. Kinds of queries that were not
    // asked have factors.
    errorOf(attributes, answer) {
      if (!this.uncertainty || !attributes.every((a) => this.drawn(a))) return NaN;
      const [factors] = this.uncertainty.unasked;
      const factor = factors[Math.min(attributes.length, factors.length) - 1];
      return factor * this.classError(attributes, answer);
    }

    // How attributes are known together, the twin of `PairKinds.of_set`: 2 if an edge joins two of
    // them, 1 if they were measured in one table or are three or more, 0 otherwise.
    kindOf(attributes) {
      if (!this.togetherBits) return 0;
      const parent = this.forest ? this.forest.parent : [], n = this.attributes.length;
      let kind = attributes.length > 2 ? 1 : 0;
      for (const i of attributes) {
        for (const j of attributes.filter((one) => one > i)) {
          if (parent[i] === j || parent[j] === i) return 2;
          const pair = i * n - i * (i + 1) / 2 + j - i - 1;
          if ((this.togetherBits[pair >> 3] >> (pair & 7)) & 1) kind = 1;
        }
      }
      return kind;
    }

    // The standard error of the dependence of two attributes, in units of a correlation.
    missed(first, second) {
      return this.uncertainty ? this.uncertainty.missed[this.kindOf([first, second])] : 0;
    }

    // The error of conjunctions of so many attributes with such an answer.
    classError(attributes, answer) {
      const {places, rows: kinds} = this.uncertainty;
      const rows = kinds[Math.min(this.kindOf(attributes), kinds.length - 1)];
      const row = rows[Math.min(attributes.length, rows.length) - 1];
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
  }

  return {Model, numbersOf};
})());
