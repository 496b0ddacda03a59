// Cross tables with intervals: the twin of `release/asking/questions.py` and of `spread.py`, for
// the conditions that the page can ask. Agreement is tested to 1e-9.
"use strict";
Object.assign(dualquery, (() => {
  const WITHIN = 1.959963984540054, STEPS = 60, MOST_LITERALS = 3, MOST_ATOMS = 20000;
  const MOST_CELLS = 4000;  // in a page; Python has room for more

  // Which codes of its attribute a literal allows.
  function allowed(model, literal) {
    const found = new Array(model.attributes[literal.attribute].size).fill(!!literal.negated);
    for (const code of literal.codes) found[code] = !literal.negated;
    return found;
  }

  // What a condition depends on: literals that hold everywhere or nowhere decide nothing.
  class Condition {
    constructor(model, query) {
      this.parity = query.kind === "parity";
      this.sets = new Map(query.literals.map((l) => [l.attribute, allowed(model, l)]));
      const full = (set) => set.every(Boolean), empty = (set) => !set.some(Boolean);
      this.never = !this.parity && [...this.sets.values()].some(empty);
      this.decisive = [...this.sets].filter(([, set]) =>
        !full(set) && (this.parity ? !empty(set) : !this.never)).map(([attribute]) => attribute);
      const constant = [...this.sets.values()].filter(full).length % 2 === 1;
      if (this.parity && !this.decisive.length) this.never = constant;
      this.always = !this.never && !this.decisive.length;
    }

    // Whether it holds for a record with these codes; attributes that are left out decide nothing.
    holds(attributes, codes) {
      let odd = false;
      for (const [attribute, set] of this.sets) {
        const place = attributes.indexOf(attribute);
        const own = place < 0 ? set[0] : set[codes[place]];
        if (!this.parity && place >= 0 && !own) return false;
        odd = odd !== own;
      }
      return this.parity ? !odd : !this.never;
    }

    // Whether some record with these codes satisfies it.
    possible(attributes, codes) {
      if (this.never) return false;
      if (!this.parity) return this.holds(attributes, codes);
      const open = this.decisive.some((attribute) => !attributes.includes(attribute));
      return open || this.holds(attributes, codes);
    }
  }

  // All cells of some attributes, in the order of their codes, the last one fastest.
  function cellsOf(sizes) {
    let found = [[]];
    for (const size of sizes) {
      found = found.flatMap((codes) => Array.from({length: size}, (_, code) => [...codes, code]));
    }
    return found;
  }

  // The share of every cell among all records, with the condition.
  function joint(model, attributes, query) {
    const others = query.literals.filter((l) => !attributes.includes(l.attribute));
    const among = model.among([...attributes, ...others.map((l) => l.attribute)]);
    const K = among.components, parity = query.kind === "parity";
    const own = query.literals.filter((l) => attributes.includes(l.attribute));
    const sets = own.map((l) => [attributes.indexOf(l.attribute), allowed(model, l)]);
    const product = new Float64Array(K).fill(1);
    for (const literal of others) {
      const masses = model.masses(literal, among);
      for (let k = 0; k < K; k++) product[k] *= parity ? 1 - 2 * masses[k] : masses[k];
    }
    const tables = attributes.map((a) => among.tables.get(a));
    const sizes = attributes.map((a) => model.attributes[a].size);
    return cellsOf(sizes).map((codes) => {
      let sign = 1;
      for (const [place, set] of sets) {
        if (!set[codes[place]] && !parity) return 0;
        if (set[codes[place]] && parity) sign = -sign;
      }
      let sum = 0;
      for (let k = 0; k < K; k++) {
        let part = among.weights[k] * (parity ? (1 + sign * product[k]) / 2 : product[k]);
        for (let i = 0; i < codes.length; i++) part *= tables[i][k * sizes[i] + codes[i]];
        sum += part;
      }
      return sum;
    });
  }

  function freeVariances(errors) {
    const squares = errors.map((e) => e * e);
    let free = squares;
    for (let step = 0; step < STEPS; step++) {
      const total = free.reduce((a, b) => a + b, 0) || 1;
      free = squares.map((s, i) => s / (1 - Math.min(free[i] / total, 0.5)));
    }
    return free;
  }

  // The standard error of a figure that moves so with shares that have these errors.
  function standardError(moves, errors) {
    const free = freeVariances(errors);
    let total = 0, common = 0, square = 0;
    free.forEach((v, i) => { total += v; common += v * moves[i]; square += v * moves[i] ** 2; });
    return Math.sqrt(Math.max(square - common ** 2 / (total > 0 ? total : 1), 0));
  }

  // The variances of all cells of some attributes before they are made to add up to zero; null if
  // the cells are too many.
  function freeCells(model, attributes) {
    const count = attributes.reduce((size, a) => size * model.attributes[a].size, 1);
    if (attributes.length > MOST_LITERALS || count > MOST_ATOMS) return null;
    const shares = joint(model, attributes, {kind: "conjunction", literals: []});
    return freeVariances(shares.map((share) => model.errorOf(attributes, share)));
  }

  // The part of a dependence of these attributes that a fit typically loses.
  function lostPart(model, attributes) {
    if (!model.uncertainty || !attributes.length) return 0;
    return model.uncertainty.lost[Math.min(attributes.length, MOST_LITERALS) - 1];
  }

  // The standard error of a share; null where it is unknown. A conjunction that joins several
  // codes, such as a range, has the error of their sum, if that is larger.
  function errorOfShare(model, query, share) {
    const plain = model.error(query, share);
    const condition = new Condition(model, query);
    const joins = condition.decisive.some((a) => {
      const set = condition.sets.get(a), count = set.filter(Boolean).length;
      return count > 1 && count < set.length - 1;
    });
    if (plain === null || condition.parity || !joins) return plain;
    const attributes = [...condition.decisive].sort((a, b) => a - b);
    const free = freeCells(model, attributes);
    if (!free) return plain;
    const sizes = attributes.map((a) => model.attributes[a].size);
    const every = free.reduce((a, b) => a + b, 0);
    let inside = 0;
    cellsOf(sizes).forEach((codes, i) => {
      if (condition.holds(attributes, codes)) inside += free[i];
    });
    const square = Math.max(inside - inside ** 2 / Math.max(every, 1e-300), 0);
    // How far the share is from what independent columns would have; a fit loses a part of that.
    const away = share - attributes.reduce((product, a) => {
      const own = joint(model, [a], {kind: "conjunction", literals: []});
      return product * own.reduce((sum, s, code) => sum + (condition.sets.get(a)[code] ? s : 0), 0);
    }, 1);
    return Math.max(plain, Math.hypot(Math.sqrt(square), lostPart(model, attributes) * away));
  }

  // What the finest cells say about the error of each cell; null if they are too many.
  function errorsOfAtoms(model, columns, condition, ratio, total) {
    const more = condition.decisive.filter((a) => !columns.includes(a)).sort((a, b) => a - b);
    const attributes = [...columns, ...more];
    const free = freeCells(model, attributes);
    if (!free) return null;
    const sizes = attributes.map((a) => model.attributes[a].size);
    const count = free.length;
    const every = free.reduce((a, b) => a + b, 0);
    const within = count / ratio.length;  // atoms per cell; those of one cell follow one another
    const own = new Array(ratio.length).fill(0);
    let kept = 0;
    cellsOf(sizes).forEach((codes, i) => {
      if (!condition.holds(attributes, codes)) return;
      own[Math.floor(i / within)] += free[i];
      kept += free[i];
    });
    return ratio.map((share, i) => {
      const rest = kept - own[i];
      const square = own[i] * (1 - share) ** 2 + rest * share ** 2;
      const common = (own[i] * (1 - share) - rest * share) ** 2 / Math.max(every, 1e-300);
      return Math.sqrt(Math.max(square - common, 0)) / total;
    });
  }

  // The distribution of some columns among the records that satisfy a query, cell by cell; null
  // where no record does. `low` and `high` are null where the error is unknown.
  function crossTable(model, columns, query) {
    const sizes = columns.map((a) => model.attributes[a].size);
    if (sizes.reduce((a, b) => a * b, 1) > MOST_CELLS) return undefined;
    const condition = new Condition(model, query);
    const cells = cellsOf(sizes), found = joint(model, columns, query);
    const total = found.reduce((a, b) => a + b, 0);
    if (condition.never || !(total > 0)) return null;
    const ratio = found.map((share) => share / total);
    let errors;
    if (!query.literals.length) {
      errors = found.map((share) => model.errorOf(columns, share));
    } else {
      const decisive = [...new Set([...columns, ...condition.decisive])];
      const possible = cells.map((codes) => condition.possible(columns, codes));
      const several = possible.filter(Boolean).length > 1;
      const rest = condition.always ? 0
        : model.errorOf(condition.decisive, Math.max(1 - total, 0));
      const atoms = errorsOfAtoms(model, columns, condition, ratio, total);
      errors = found.map((share, i) => {
        if (!possible[i] || !several) return 0;
        const own = model.errorOf(decisive, share);
        const others = model.errorOf(decisive, Math.max(total - share, 0));
        const moves = [(1 - ratio[i]) / total, -ratio[i] / total, 0];
        const plain = standardError(moves, [own, others, rest]);
        return atoms ? Math.max(plain, atoms[i]) : plain;
      });
    }
    const known = (value) => (Number.isNaN(value) ? null : value);
    return {
      columns, cells, share: ratio,
      low: ratio.map((share, i) => known(Math.max(share - WITHIN * errors[i], 0))),
      high: ratio.map((share, i) => known(Math.min(share + WITHIN * errors[i], 1))),
    };
  }

  // The table as `dualquery table --format csv` writes it.
  function csv(model, table) {
    const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const figures = ["share", "low", "high"];
    const names = table.columns.map((a) => model.attributes[a].name);
    const head = names.map((name) => (figures.includes(name) ? `${name} (column)` : name));
    const lines = [[...head, ...figures].map(cell).join(",")];
    table.cells.forEach((codes, i) => {
      const words = codes.map((code, j) =>
        cell(dualquery.cellText(model.attributes[table.columns[j]], code)));
      const numbers = figures.map((name) => (table[name][i] === null ? "" : String(table[name][i])));
      lines.push([...words, ...numbers].join(","));
    });
    return lines.join("\n") + "\n";
  }

  return {crossTable, csv, errorOfShare};
})());
