// What the page can be asked: shares, means, quantiles and tables with their intervals. The twin of
// `Questions` in `release/asking/questions.py`; agreement is tested to 1e-12.
"use strict";
Object.assign(dualquery, (() => {
  const WITHIN = 1.959963984540054;
  const {Condition, Atoms, joint, eachCell, standardError, sizesOf, sum} = dualquery;

  function figure(value, error, least, most) {
    if (!(error >= 0)) return {value, error: null, low: null, high: null};
    return {value, error, low: Math.max(value - WITHIN * error, least),
            high: Math.min(value + WITHIN * error, most)};
  }

  const larger = (one, other) => (Number.isNaN(one) || Number.isNaN(other) ? NaN
    : Math.max(one, other));
  const ordered = (attributes) => [...new Set(attributes)].sort((a, b) => a - b);

  class Questions {
    constructor(model) {
      this.model = model;
      this.numbersKept = new Map();
    }

    // The share of all records for which literals hold, each on an attribute of its own.
    share(literals) {
      const model = this.model, value = model.answer(literals);
      const plain = model.errorOf(literals.map((l) => l.attribute), value);
      return figure(value, this.joined(literals, plain), 0, 1);
    }

    // The error of a share that joins several codes, such as a range, is that of their sum, if that
    // is larger.
    joined(literals, plain) {
      const condition = new Condition(this.model, literals);
      const joins = condition.decisive.some((a) => {
        const set = condition.sets.get(a), count = set.filter(Boolean).length;
        return count > 1 && count < set.length - 1;
      });
      const atoms = joins && Atoms.of(this.model, ordered(condition.decisive));
      if (!atoms || Number.isNaN(plain)) return plain;
      return Math.max(plain, atoms.error((codes) =>
        (condition.allows(atoms.attributes, codes) ? 1 : 0)));
    }

    // The share among the records of a condition; null where there is none.
    given(target, condition) {
      if (!condition.sets.size) return this.share(target);
      const model = this.model, [one] = target;
      const both = condition.and(one), neither = condition.and({...one, negated: !one.negated});
      const total = condition.never ? 0 : model.answer(condition.literals);
      if (!(total > 0)) return null;
      const value = both.never ? 0 : model.answer(both.literals);
      if (both.never || neither.never) return figure(neither.never ? 1 : 0, 0, 0, 1);
      const ratio = Math.min(value / total, 1);
      let error = standardError([(1 - ratio) / total, -ratio / total, 0], [
        model.errorOf(both.decisive, value),
        model.errorOf(neither.decisive, Math.max(total - value, 0)),
        this.rest(condition, total)]);
      const atoms = Atoms.of(model, ordered([...condition.decisive, ...both.decisive]));
      if (atoms) {
        error = larger(error, atoms.error((codes) =>
          (!condition.allows(atoms.attributes, codes) ? 0
            : ((both.allows(atoms.attributes, codes) ? 1 : 0) - ratio) / total)));
      }
      return figure(ratio, error, 0, 1);
    }

    // The error of the share that does not satisfy a condition.
    rest(condition, total) {
      return condition.always ? 0
        : this.model.errorOf(condition.decisive, Math.max(1 - total, 0));
    }

    // The distribution of columns among the records of a condition, cell by cell; null where no
    // record has it.
    table(columns, condition) {
      const model = this.model, sizes = sizesOf(model, columns);
      const bare = !condition.sets.size;
      const found = joint(model, columns, bare ? null : condition), total = sum(found);
      if (condition.never || !(total > 0)) return null;
      const share = found.map((one) => one / total);
      const errors = bare ? found.map((one) => model.errorOf(columns, one))
        : this.errorsOfCells(columns, condition, found, total);
      const end = (sign, stop) => Array.from(share, (one, i) =>
        (Number.isNaN(errors[i]) ? null : stop(one + sign * WITHIN * errors[i])));
      return {columns, sizes, share: Array.from(share), low: end(-1, (v) => Math.max(v, 0)),
              high: end(1, (v) => Math.min(v, 1))};
    }

    errorsOfCells(columns, condition, found, total) {
      const model = this.model, sizes = sizesOf(model, columns), possible = [];
      eachCell(sizes, (codes) => possible.push(condition.allows(columns, codes)));
      const several = possible.filter(Boolean).length > 1;
      const decisive = [...new Set([...columns, ...condition.decisive])];
      const rest = this.rest(condition, total);
      const more = ordered(condition.decisive.filter((a) => !columns.includes(a)));
      const atoms = Atoms.of(model, [...columns, ...more]);
      const own = new Float64Array(found.length);
      let together;
      if (atoms) {  // atoms of one cell follow one another
        const each = atoms.free.length / found.length, pulls = new Float64Array(atoms.free.length);
        eachCell(atoms.sizes, (codes, i) => {
          if (!condition.allows(atoms.attributes, codes)) return;
          own[Math.floor(i / each)] += atoms.free[i];
          pulls[i] = atoms.shares[i];
        });
        together = dualquery.bentCells(atoms.bends, pulls, found.map((one) => one / total));
      }
      const kept = sum(own);
      return found.map((one, i) => {
        if (!possible[i] || !several) return 0;
        const ratio = one / total;
        const plain = standardError([(1 - ratio) / total, -ratio / total, 0], [
          model.errorOf(decisive, one), model.errorOf(decisive, Math.max(total - one, 0)), rest]);
        if (!atoms) return plain;
        const others = kept - own[i];
        const square = own[i] * (1 - ratio) ** 2 + others * ratio ** 2;
        const common = (own[i] * (1 - ratio) - others * ratio) ** 2 / Math.max(atoms.total, 1e-300);
        return larger(plain, Math.sqrt(Math.max(square - common, 0) + together[i]) / total);
      });
    }

    numbers(column) {
      if (!this.numbersKept.has(column)) {
        const attribute = this.model.attributes[column];
        this.numbersKept.set(column, new dualquery.Numbers(
          attribute.numbers === true ? null : attribute.numbers, attribute));
      }
      return this.numbersKept.get(column);
    }

    // The condition, and that the cell of a column is not missing.
    present(column, condition) {
      const attribute = this.model.attributes[column];
      if (!attribute.missing) return condition;
      return condition.and({attribute: column, codes: [attribute.proper], negated: true});
    }

    // What means and quantiles of a column need; null where no record has a number.
    ofNumbers(column, condition) {
      const model = this.model, numbers = this.numbers(column);
      const present = this.present(column, condition), count = numbers.mean.length;
      const bare = !present.sets.size;
      if (present.never) return null;
      const all = joint(model, [column], bare ? null : present), total = sum(all);
      if (!(total > 0)) return null;
      const attributes = [...new Set([column, ...present.decisive])];
      const atoms = Atoms.of(model, [column,
        ...ordered(present.decisive.filter((a) => a !== column))]);
      return {numbers, present, total, attributes, atoms, joint: all.slice(0, count),
              every: joint(model, [column], null).slice(0, count),
              rest: bare ? 0 : this.rest(present, total),
              allows: (code) => present.allows([column], [code])};
    }

    // The error of a figure that moves so with the codes of a column.
    moved(atoms, present, moves) {
      return atoms.error((codes) =>
        (present.allows(atoms.attributes, codes) ? moves[codes[0]] || 0 : 0));
    }

    mean(column, condition) {
      const asked = this.ofNumbers(column, condition);
      if (!asked) return null;
      const {numbers, present, total, joint: own, atoms} = asked;
      const value = sum(own.map((share, c) => share * numbers.mean[c])) / total;
      const moves = numbers.mean.map((m) => (m - value) / total);
      const errors = Array.from(own, (share, c) =>
        (asked.allows(c) ? this.model.errorOf(asked.attributes, share) : 0));
      let outer = standardError([...moves, 0], [...errors, asked.rest]);
      if (atoms) outer = larger(outer, this.moved(atoms, present, moves));
      const inner = numbers.varianceOfMean(own, asked.every);
      return figure(value, Math.hypot(outer, Math.sqrt(inner)), numbers.least, numbers.most);
    }

    // The number that a share of the column's numbers does not exceed, with Woodruff's interval.
    quantile(column, wanted, condition) {
      const asked = this.ofNumbers(column, condition);
      if (!asked) return null;
      const {numbers, present, total, joint: own, atoms} = asked;
      const value = numbers.quantile(own, wanted);
      const errors = [total * wanted, total * (1 - wanted)]
        .map((share) => this.model.errorOf(asked.attributes, share));
      let outer = standardError([(1 - wanted) / total, -wanted / total, 0], [...errors, asked.rest]);
      if (atoms) {
        const below = numbers.partsBelow(own, wanted).map((part) => (part - wanted) / total);
        outer = larger(outer, this.moved(atoms, present, below));
      }
      const inner = numbers.varianceOfShare(own, asked.every, wanted);
      const reach = WITHIN * Math.hypot(outer, Math.sqrt(inner));
      if (Number.isNaN(reach)) return figure(value, NaN);
      return {value, error: null, low: numbers.quantile(own, wanted - reach),
              high: numbers.quantile(own, wanted + reach)};
    }
  }

  // A table as `dualquery table --format csv` writes it.
  function csv(model, table) {
    const figures = ["share", "low", "high"];
    const names = table.columns.map((a) => model.attributes[a].name);
    const head = names.map((name) => (figures.includes(name) ? `${name} (column)` : name));
    const rows = [];
    eachCell(table.sizes, (codes, i) => rows.push([
      ...codes.map((code, j) => dualquery.cellText(model.attributes[table.columns[j]], code)),
      ...figures.map((name) => (table[name][i] === null ? "" : String(table[name][i])))]));
    return csvText([[...head, ...figures], ...rows]);
  }

  function csvText(rows) {
    const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
  }

  return {Questions, csv, csvText};
})());
