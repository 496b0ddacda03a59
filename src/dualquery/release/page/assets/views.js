// What a question shows: a sentence, the rows of a chart or a table, a command and a file. Pure
// functions; no document here.
"use strict";
Object.assign(dualquery, (() => {
  const {Condition, joint, labelOf, listed, literalWords, groupWords} = dualquery;
  const TOP = 10, MANY = 24, MOST_CELLS = 250000;
  const NAMES = {share: "Share", count: "Number", mean: "Mean", median: "Median"};

  const shell = (text) => (/^[\w.,:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const overlaps = (one, other) => one.low !== null && other.low !== null &&
    one.low <= other.high && other.low <= one.high;
  // Of rows in the order of their figures, the two that differ most and do not overlap.
  function farthestApart(rows) {
    const gap = ([one, other]) => other.figure.value - one.figure.value;
    const pairs = rows.slice(0, MANY).flatMap((one, i) => rows.slice(i + 1)
      .filter((other) => !overlaps(one.figure, other.figure)).map((other) => [one, other]));
    return pairs.reduce((best, pair) => (!best || gap(pair) > gap(best) ? pair : best), null);
  }

  // The end of a sentence about some records and all: what an interval does not tell apart is said.
  const ending = (some, all) => (all && some.low !== null && some.low <= all.value &&
    all.value <= some.high ? ". The relation is below the noise." : ".");

  class View {
    constructor(questions, state, find = "") {
      const {model} = questions;
      Object.assign(this, {questions, model, state, find});
      this.attributes = model.attributes;
      this.column = this.attributes[state.of];
      this.condition = new Condition(model, state.where);
      this.numeric = state.figure === "mean" || state.figure === "median";
      this.target = state.codes.length && !this.numeric
        ? [{attribute: state.of, codes: state.codes}] : null;
      this.format = this.numeric ? dualquery.amountsOf(this.column.unit)
        : state.figure === "count" && model.rows ? dualquery.countsOf(model.rows)
        : dualquery.percents;
      this.people = groupWords(model, state.where);
    }

    // Why nothing can be said; empty if something can.
    get hindrance() {
      const named = [this.state.of, this.state.by, ...this.state.where.map((l) => l.attribute)];
      const blind = named.find((a) => a !== null && !this.model.known(a));
      if (blind !== undefined) return dualquery.unknownText(this.attributes[blind]);
      if (this.condition.never) return "No record can satisfy these conditions.";
      if (this.condition.sets.size && !(this.model.answer(this.condition.literals) > 0)) {
        return "The release holds these conditions for impossible.";
      }
      if (this.kind === "cross" && this.cells > MOST_CELLS) {
        return `A table of ${this.cells.toLocaleString("en")} cells is too large for a page: ask ` +
          "dualquery table.";
      }
      return "";
    }

    get cells() {
      return this.column.size * this.attributes[this.state.by].size;
    }

    get kind() {
      if (this.state.by === null) return "bars";
      return this.target || this.numeric ? "dots" : "cross";
    }

    // The figure that is asked for, among the records of a condition; null where there is none.
    figureOf(condition) {
      const {figure, of} = this.state;
      if (figure === "mean") return this.questions.mean(of, condition);
      if (figure === "median") return this.questions.quantile(of, 0.5, condition);
      return this.shareOf(this.target, condition);
    }

    // A share of the condition's records or, as part of a count, of all records.
    shareOf(target, condition) {
      if (this.state.figure !== "count") return this.questions.given(target, condition);
      const both = condition.and(...target);
      return both.never ? {value: 0, error: 0, low: 0, high: 0}
        : this.questions.share(both.literals);
    }

    // The values of a column, or its groups, as {label, codes}; of many only the most frequent.
    choices(position) {
      const attribute = this.attributes[position], {groups, all} = this.state;
      const weights = joint(this.model, [position], this.condition.sets.size ? this.condition : null);
      let found;
      if (groups && attribute.groups) {
        found = attribute.groups.map((label, group) => ({label, group, codes:
          attribute.groupOf.flatMap((own, code) => (own === group ? [code] : []))}));
        if (attribute.missing) {
          found.push({label: labelOf(attribute, attribute.proper), codes: [attribute.proper]});
        }
      } else {
        found = Array.from({length: attribute.size}, (_, code) =>
          ({label: labelOf(attribute, code), codes: [code]}));
      }
      const own = this.condition.sets.get(position);
      found = found.filter(({codes}) => !own || codes.some((code) => own[code]));
      const many = found.length > MANY && !attribute.sequence;
      const wanted = this.find.trim().toLowerCase();
      for (const one of found) one.weight = one.codes.reduce((sum, code) => sum + weights[code], 0);
      const total = found.length;
      if (many && wanted) {
        found = found.filter(({label}) => label.toLowerCase().includes(wanted));
      } else if (many && !all) {
        found = [...found].sort((a, b) => b.weight - a.weight).slice(0, TOP);
      }
      return {found, many, hidden: total - found.length};
    }

    // Rows of the chart: each a label, a figure, and perhaps the same figure of all records.
    get chart() {
      if (this.made) return this.made;
      const {state} = this;
      if (this.kind === "dots") {
        const {found, many, hidden} = this.choices(state.by);
        const rows = found.map(({label, codes}) => {
          const inside = this.condition.and({attribute: state.by, codes});
          const empty = inside.never || !(this.model.answer(inside.literals) > 0);
          return {label, codes, figure: empty ? null : this.figureOf(inside)};
        }).filter((row) => row.figure);
        const reference = rows[state.against] || null;
        const base = reference ? reference.figure : this.overall;
        for (const row of rows) row.alike = row !== reference && overlaps(row.figure, base);
        this.made = {rows, many, hidden, reference};
      } else {
        const {found, many, hidden} = this.choices(state.of);
        const everyone = new Condition(this.model, []);
        const whole = found.every(({codes}) => codes.length === 1);
        const table = whole && state.figure !== "count"
          ? this.questions.table([state.of], this.condition) : null;
        const rows = found.map(({label, codes}) => {
          const [code] = codes, target = [{attribute: state.of, codes}];
          const figure = table ? {value: table.share[code], low: table.low[code],
                                  high: table.high[code]} : this.shareOf(target, this.condition);
          const all = state.where.length && state.figure !== "count"
            ? this.questions.given(target, everyone) : null;
          return {label, codes, figure, all, chosen: codes.every((c) => state.codes.includes(c))};
        });
        this.made = {rows, many, hidden};
      }
      return this.made;
    }

    // Figures of bars are shares, even if the sentence tells a mean.
    get chartFormat() {
      return this.kind === "bars" && this.numeric ? dualquery.percents : this.format;
    }

    // The figure of all records of the condition together.
    get overall() {
      return this.figureOf(this.condition);
    }

    // A cross table: {rows: [{label, cells, total}], heads, foot, corner}.
    get cross() {
      const {of, by, as} = this.state, {questions, condition} = this;
      const [down, across] = [this.column, this.attributes[by]];
      const one = (table, i) => ({value: table.share[i], low: table.low[i], high: table.high[i]});
      const all = questions.table([of, by], condition);
      const downs = questions.table([of], condition), acrosses = questions.table([by], condition);
      const within = (table, attribute, code) =>
        questions.table([table], condition.and({attribute, codes: [code]}));
      const parts = as === "all" ? null
        : Array.from({length: (as === "row" ? down : across).size}, (_, code) =>
          (as === "row" ? within(by, of, code) : within(of, by, code)));
      const cell = (i, j) => {
        if (!parts) return one(all, i * across.size + j);
        const table = parts[as === "row" ? i : j];
        return table && one(table, as === "row" ? j : i);
      };
      return {
        heads: Array.from({length: across.size}, (_, j) => labelOf(across, j)),
        rows: Array.from({length: down.size}, (_, i) => ({label: labelOf(down, i),
          cells: Array.from({length: across.size}, (_, j) => cell(i, j)), total: one(downs, i)})),
        foot: Array.from({length: across.size}, (_, j) => one(acrosses, j)),
        table: all,
      };
    }

    // The answer in one sentence, as pieces of text; those in an array are set bold.
    get sentence() {
      const {state, format, column} = this, {figure} = state;
      if (this.hindrance) return [this.hindrance];
      const told = (f) => [[format.value(f)], f.low === null ? " (interval unknown)"
        : f.high > f.low ? ` (${format.range(f)})` : ""];
      if (this.kind === "dots") return this.comparison(told);
      const where = state.where.length > 0;
      if (this.target) {
        const what = literalWords(column, state.codes, false);
        const f = this.overall;
        if (figure === "count") {
          return ["About ", ...told(f), ` of the ${this.model.rows.toLocaleString("en")} `,
                  `${this.model.people} have ${listed([...state.where.map((l) =>
                    literalWords(this.attributes[l.attribute], l.codes, l.negated)), what], "and")}.`];
        }
        const everyone = where ? this.questions.share(this.target) : null;
        return [where ? `Among ${this.people}, ` : "", ...told(f),
                where ? "" : ` of all ${this.people}`, ` have ${what}`,
                ...(everyone ? [`; among all ${this.model.people} it is `, ...told(everyone)] : []),
                ending(f, everyone)];
      }
      if (this.numeric) {
        const f = this.overall;
        if (!f) return ["No record has a number there."];
        const everyone = where ? this.figureOf(new Condition(this.model, [])) : null;
        return [`The ${figure} of ${column.label} is `, ...told(f), ` among ${where ? "" : "all "}`,
                this.people, ...(everyone ? [`; among all ${this.model.people} it is `,
                                             ...told(everyone)] : []), ending(f, everyone)];
      }
      const rows = this.kind === "cross" ? null : this.chart.rows;
      if (!rows) {
        return [`The table shows ${column.label} by ${this.attributes[state.by].label}, among `,
                `${where ? "" : "all "}${this.people}.`];
      }
      const most = rows.reduce((a, b) => (b.figure.value > a.figure.value ? b : a), rows[0]);
      if (!most) return ["Nothing is found."];
      return [`${column.label} among ${where ? "" : "all "}${this.people}: the most frequent is `,
              `${most.label}, `, ...told(most.figure), "."];
    }

    // The two groups that are farthest apart; of those that can be told apart, if there are any.
    comparison(told) {
      const {rows} = this.chart, {state, column} = this;
      const by = this.attributes[state.by];
      if (!rows.length) return ["No group has such records."];
      const what = this.numeric ? `The ${state.figure} of ${column.label}`
        : `The ${state.figure === "count" ? "number" : "share"} with ` +
          literalWords(column, state.codes, false);
      const among = state.where.length ? ` among ${this.people}` : "";
      const known = rows.filter((row) => row.figure.low !== null);
      const sorted = (known.length ? known : [...rows]).sort((a, b) => a.figure.value - b.figure.value);
      const [from, to] = [sorted[0], sorted[sorted.length - 1]];
      const named = (row) => ` for ${by.label} ${row.label}`;
      const both = (verb, one, word, other, end) => [`${what}${among} ${verb} `, ...told(one.figure),
        named(one), ` ${word} `, ...told(other.figure), named(other), end];
      if (from === to) return [`${what}${among} is `, ...told(from.figure), `${named(from)}.`];
      if (!overlaps(from.figure, to.figure)) return both("goes from", from, "to", to, ".");
      const apart = farthestApart(sorted);
      return apart ? both("is", apart[0], "and", apart[1], ".") : both("goes from", from, "to", to,
        ". These two cannot be told apart: the relation is below the noise.");
    }

    get text() {
      return this.sentence.flat().join("").replaceAll("\u00a0", " ");
    }

    get title() {
      const {state, column} = this;
      const what = this.target ? literalWords(column, state.codes, false) : column.label;
      const by = state.by === null ? "" : ` by ${this.attributes[state.by].label}`;
      const start = this.kind === "bars" && this.numeric ? "Distribution of "
        : this.target && this.kind === "bars" ? "" : this.target || this.numeric
        ? `${NAMES[state.figure]} of ` : "";
      return `${start}${this.kind === "bars" ? column.label : what}${by}, among ` +
        `${state.where.length ? "" : "all "}${this.people}`;
    }

    // The command that prints the figure of the sentence, or the table.
    get command() {
      const {state, attributes} = this;
      const text = (literals) => shell(dualquery.formatQuery(literals, attributes));
      const name = (a) => shell(attributes[a].name);
      const where = this.condition.sets.size ? ` --where ${text(state.where)}` : "";
      if (this.numeric) {
        return `dualquery summary DIR ${name(state.of)}${where}` +
          (state.by === null ? "" : ` --by ${name(state.by)}`);
      }
      if (this.target) {
        if (state.figure === "count") {
          return `dualquery answer DIR ${text(this.condition.and(...this.target).literals)}`;
        }
        const first = this.kind === "dots" ? this.chart.rows[0] : null;
        const given = first ? [...state.where.filter((l) => l.attribute !== state.by),
          {attribute: state.by, codes: first.codes}] : state.where;
        return `dualquery answer DIR ${text(this.target)}` +
          (given.length ? ` --given ${text(given)}` : "");
      }
      return `dualquery table DIR ${name(state.of)}${state.by === null ? "" : ` ${name(state.by)}`}` +
        where;
    }

    // What is shown, as a file for spreadsheets.
    get csv() {
      const {state, attributes} = this, end = (v) => (v === null ? "" : String(v));
      if (this.kind === "dots") {
        const what = this.numeric ? state.figure : state.figure === "count" ? "number" : "share";
        const scale = state.figure === "count" ? this.model.rows || 1 : 1;
        return dualquery.csvText([[attributes[state.by].name, what, "low", "high"],
          ...this.chart.rows.map(({label, figure}) => [label.replaceAll("\u00a0", " "),
            ...[figure.value, figure.low, figure.high].map((v) => end(v === null ? v : v * scale))])]);
      }
      if (this.kind === "cross" && state.as !== "all") {
        const {rows, heads} = this.cross;
        return dualquery.csvText([[this.column.name, attributes[state.by].name,
          `share of the ${state.as}`, "low", "high"], ...rows.flatMap((row, i) =>
          row.cells.map((f, j) => [dualquery.cellText(this.column, i),
            dualquery.cellText(attributes[state.by], j),
            ...(f ? [end(f.value), end(f.low), end(f.high)] : ["", "", ""])]))]);
      }
      const columns = state.by === null ? [state.of] : [state.of, state.by];
      return dualquery.csv(this.model, this.questions.table(columns, this.condition));
    }
  }

  return {View};
})());
