// The table that is shown below the answer: one column as bars, two as a cross table.
"use strict";
Object.assign(dualquery, (() => {
  const MOST_BARS = 60;
  const make = dualquery.make;
  const number = (text) => make("td", {className: "number"}, text);

  function half(table, i) {
    return dualquery.halfInterval(table.share[i], table.low[i], table.high[i]);
  }

  function textOf(table, i) {
    return dualquery.percent(table.share[i], table.low[i], table.high[i]);
  }

  // A bar, the interval as a line across its end, and a mark for all records.
  function bar(table, i, widest, overall) {
    const place = (share) => `${(100 * share) / widest}%`;
    const filled = make("i");
    filled.style.width = place(table.share[i]);
    const cell = make("span", {}, filled);
    if (table.low[i] !== null) {
      const reach = make("u");
      reach.style.left = place(table.low[i]);
      reach.style.width = place(table.high[i] - table.low[i]);
      cell.append(reach);
    }
    if (overall) {
      const mark = make("b");
      mark.style.left = place(overall.share[i]);
      cell.append(mark);
    }
    return make("td", {className: "bar", ariaHidden: "true"}, cell);
  }

  // Rows of one column: whole and in order if it has an order, else at most the largest ones.
  function bars(model, table, overall) {
    const attribute = model.attributes[table.columns[0]];
    let codes = table.share.map((_, code) => code);
    const ordered = attribute.edges || attribute.ordered;
    const hidden = ordered ? 0 : Math.max(codes.length - MOST_BARS, 0);
    if (hidden) codes = codes.sort((a, b) => table.share[b] - table.share[a] || a - b)
      .slice(0, MOST_BARS);
    const ends = codes.flatMap((c) => [table.share[c], table.high[c] || 0,
                                       overall ? overall.share[c] : 0]);
    const widest = Math.max(...ends, 1e-12);
    const rows = codes.map((code) => make("tr", {},
      make("th", {scope: "row"}, dualquery.labelOf(attribute, code)),
      bar(table, code, widest, overall), number(textOf(table, code)),
      make("td", {className: "number muted"}, half(table, code)),
      ...(overall ? [make("td", {className: "number muted"}, textOf(overall, code))] : [])));
    if (hidden) rows.push(make("tr", {}, make("td", {colSpan: 5},
      `and ${hidden.toLocaleString("en")} smaller ones, all of which the CSV file has`)));
    return rows;
  }

  // Rows and columns of two columns; the darker a cell, the larger its share.
  function cross(model, table) {
    const [first, second] = table.columns.map((a) => model.attributes[a]);
    const strongest = Math.max(...table.share, 1e-12);
    const head = make("tr", {}, make("td", {}), ...Array.from({length: second.size}, (_, code) =>
      make("th", {scope: "col"}, dualquery.labelOf(second, code))));
    const rows = Array.from({length: first.size}, (_, code) => make("tr", {},
      make("th", {scope: "row"}, dualquery.labelOf(first, code)),
      ...Array.from({length: second.size}, (_, other) => {
        const i = code * second.size + other;
        const cell = make("td", {}, textOf(table, i),
          make("small", {className: "muted"}, half(table, i)));
        cell.style.setProperty("--heat", `${Math.round((100 * table.share[i]) / strongest)}%`);
        return cell;
      })));
    return {head, rows};
  }

  // The command that prints the same table.
  function command(model, table, query) {
    const shell = (text) => (/^[\w.,:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
    const names = table.columns.map((a) => shell(model.attributes[a].name)).join(" ");
    const where = query.literals.length
      ? ` --where ${shell(dualquery.formatQuery(query, model.attributes))}` : "";
    return `dualquery table DIR ${names}${where}`;
  }

  return {bars, cross, command};
})());
