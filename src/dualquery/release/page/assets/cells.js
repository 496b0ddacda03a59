// Shares of cells and what is known of their errors: the twin of `release/asking/questions.py` and
// of `model/spread.py`, for conditions that all hold. Pure functions; no document here.
"use strict";
Object.assign(dualquery, (() => {
  const STEPS = 60, MOST_LITERALS = 3, MOST_ATOMS = 20000;

  // Which codes of its attribute a literal allows.
  function allowed(model, literal) {
    const found = new Array(model.attributes[literal.attribute].size).fill(!!literal.negated);
    for (const code of literal.codes) found[code] = !literal.negated;
    return found;
  }

  // Literals that all hold; several on one attribute are joined.
  class Condition {
    constructor(model, literals) {
      this.model = model;
      this.sets = new Map();
      for (const literal of literals) {
        const own = allowed(model, literal), before = this.sets.get(literal.attribute);
        this.sets.set(literal.attribute, before ? own.map((one, i) => one && before[i]) : own);
      }
      this.never = [...this.sets.values()].some((set) => !set.some(Boolean));
      this.decisive = this.never ? []
        : [...this.sets].filter(([, set]) => !set.every(Boolean)).map(([attribute]) => attribute);
      this.always = !this.never && !this.decisive.length;
    }

    // One literal per attribute.
    get literals() {
      return [...this.sets].map(([attribute, set]) =>
        ({attribute, codes: set.flatMap((one, code) => (one ? [code] : []))}));
    }

    and(...literals) {
      return new Condition(this.model, [...this.literals, ...literals]);
    }

    // Whether a record with these codes of some attributes can satisfy it.
    allows(attributes, codes) {
      return !this.never && attributes.every((attribute, i) => {
        const set = this.sets.get(attribute);
        return !set || set[codes[i]];
      });
    }
  }

  const sizesOf = (model, attributes) => attributes.map((a) => model.attributes[a].size);

  // Calls with the codes of every cell, in order, the last attribute fastest.
  function eachCell(sizes, call) {
    const codes = sizes.map(() => 0);
    const count = sizes.reduce((a, b) => a * b, 1);
    for (let cell = 0; cell < count; cell++) {
      call(codes, cell);
      for (let i = sizes.length - 1; i >= 0; i--) {
        codes[i] += 1;
        if (codes[i] < sizes[i]) break;
        codes[i] = 0;
      }
    }
  }

  // The share of every cell among all records, together with a condition.
  function joint(model, attributes, condition) {
    const literals = condition ? condition.literals : [];
    const others = literals.filter((l) => !attributes.includes(l.attribute));
    const among = model.among([...attributes, ...others.map((l) => l.attribute)]);
    const product = Float64Array.from(among.weights);
    for (const literal of others) {
      const masses = model.masses(literal, among);
      for (let k = 0; k < product.length; k++) product[k] *= masses[k];
    }
    const sizes = sizesOf(model, attributes);
    const found = new Float64Array(sizes.reduce((a, b) => a * b, 1));
    const fill = (level, weights, first) => {
      const size = sizes[level], table = among.tables.get(attributes[level]);
      if (level === sizes.length - 1) {
        for (let k = 0; k < weights.length; k++) {
          if (weights[k] === 0) continue;
          for (let c = 0; c < size; c++) found[first + c] += weights[k] * table[k * size + c];
        }
        return;
      }
      const inner = sizes.slice(level + 1).reduce((a, b) => a * b, 1);
      for (let c = 0; c < size; c++) {
        fill(level + 1, weights.map((w, k) => w * table[k * size + c]), first + c * inner);
      }
    };
    fill(0, product, 0);
    if (condition) {
      eachCell(sizes, (codes, cell) => {
        if (!condition.allows(attributes, codes)) found[cell] = 0;
      });
    }
    return found;
  }

  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

  function freeVariances(errors) {
    const squares = Float64Array.from(errors, (e) => e * e);
    let free = squares;
    for (let step = 0; step < STEPS; step++) {
      const total = sum(free) || 1;
      free = squares.map((s, i) => s / (1 - Math.min(free[i] / total, 0.5)));
    }
    return free;
  }

  // The standard error of a figure that moves so with cells that have these variances.
  function spreadOf(moves, free) {
    let total = 0, common = 0, square = 0;
    for (let i = 0; i < free.length; i++) {
      total += free[i];
      common += free[i] * moves[i];
      square += free[i] * moves[i] * moves[i];
    }
    return Math.sqrt(Math.max(square - common ** 2 / (total > 0 ? total : 1), 0));
  }

  const standardError = (moves, errors) => spreadOf(moves, freeVariances(errors));

  // All cells of some attributes, the finest that a question tells apart; null if they are too many.
  class Atoms {
    static of(model, attributes) {
      const count = attributes.reduce((size, a) => size * model.attributes[a].size, 1);
      if (attributes.length > MOST_LITERALS || count > MOST_ATOMS) return null;
      const key = attributes.join();
      if (!model.kept.has(key)) model.kept.set(key, new Atoms(model, attributes));
      return model.kept.get(key);
    }

    constructor(model, attributes) {
      this.attributes = attributes;
      this.sizes = sizesOf(model, attributes);
      this.shares = attributes.length ? joint(model, attributes, null) : Float64Array.of(1);
      this.free = freeVariances(
        Array.from(this.shares, (share) => model.errorOf(attributes, share)));
      this.total = sum(this.free);
      this.bends = dualquery.bends(this.shares, this.sizes,
        attributes.map((a) => model.attributes[a].ordered),
        (i, j) => model.missed(attributes[i], attributes[j]));
    }

    // The error of a figure; `moves(codes)` says how much it moves with each atom.
    error(moves) {
      const found = new Float64Array(this.free.length);
      eachCell(this.sizes, (codes, cell) => { found[cell] = moves(codes); });
      return Math.hypot(spreadOf(found, this.free), Math.sqrt(this.bent(found)));
    }

    // The variance of a figure from dependences that are off.
    bent(moves) {
      return dualquery.bent(this.bends, this.shares.map((share, cell) => share * moves[cell]));
    }
  }

  return {Condition, Atoms, joint, eachCell, standardError, sizesOf, sum};
})());
