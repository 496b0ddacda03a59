// Charts and tables of the page, made from a view. Each is a table, so that screen readers read it.
"use strict";
Object.assign(dualquery, (() => {
  const AT_ONCE = 60;
  const make = dualquery.make;
  const number = (text, more = "") => make("td", {className: `number${more}`}, text);
  const LONG = 18;

  // Rows of one chart: with a long label, the label has a line of its own.
  function rowsOf(entries) {
    const long = entries.some((one) => one.label.length > LONG);
    return {long, bodies: entries.map((one) => {
      const head = make("th", long ? {scope: "rowgroup", colSpan: 4} : {scope: "row"}, one.label);
      const body = long
        ? make("tbody", {}, make("tr", {}, head), make("tr", {}, ...one.cells))
        : make("tbody", {}, make("tr", {}, head, ...one.cells));
      if (one.style) body.className = one.style;
      return body;
    })};
  }

  const cellOf = (...marks) => make("td", {className: "bar", ariaHidden: "true"},
    make("span", {}, ...marks));

  function marker(tag, from, to, style = "") {
    const made = make(tag, style ? {className: style} : {});
    made.style.left = `${from}%`;
    if (to !== null) made.style.width = `${Math.max(to - from, 0)}%`;
    return made;
  }

  // Shares as bars: the interval is a line across the end, and a mark shows all records.
  function bars(view, table) {
    const {rows} = view.chart, format = view.chartFormat;
    const widest = Math.max(1e-12, ...rows.flatMap((row) =>
      [row.figure.value, row.figure.high || 0, row.all ? row.all.value : 0]));
    const place = (value) => (100 * value) / widest;
    const {long, bodies} = rowsOf(rows.map(({label, figure, all, chosen}) => {
      const filled = make("i");
      filled.style.width = `${place(figure.value)}%`;
      const marks = [filled];
      if (figure.low !== null) marks.push(marker("u", place(figure.low), place(figure.high)));
      if (all) marks.push(marker("b", place(all.value), null));
      return {label, style: chosen ? "chosen" : "", cells: [cellOf(...marks),
        number(format.value(figure)), number(format.half(figure), " muted"),
        ...(all ? [number(format.value(all), " muted")] : [])]};
    }));
    const all = rows.some((row) => row.all);
    const head = make("thead", {}, make("tr", {}, ...(long ? [] : [make("td")]), make("td"),
      make("th", {scope: "col", colSpan: 2}, "these"), make("th", {scope: "col"}, "all")));
    table.className = long ? "bars long" : "bars";
    table.replaceChildren(...(all ? [head] : []), ...bodies);
  }

  // Figures of groups as dots with their intervals; grey where they cannot be told apart.
  function dots(view, table) {
    const {rows, reference} = view.chart, {format} = view;
    const base = reference ? reference.figure : view.overall;
    const ends = [...rows.map((row) => row.figure), base].flatMap((f) =>
      [f.value, f.low ?? f.value, f.high ?? f.value]);
    const low = Math.min(...ends), high = Math.max(...ends), width = high - low || 1;
    const place = (value) => 3 + (94 * (value - low)) / width;
    const {long, bodies} = rowsOf(rows.map((row) => {
      const {label, figure} = row, marks = [marker("b", place(base.value), null)];
      if (figure.low !== null) {
        marks.unshift(marker("s", place(base.low ?? base.value), place(base.high ?? base.value)));
        marks.push(marker("u", place(figure.low), place(figure.high)));
      }
      marks.push(marker("em", place(figure.value), null));
      const told = number(row.alike ? "≈" : "", " told");
      if (row.alike) told.setAttribute("aria-label", "cannot be told apart");
      return {label, style: row.alike ? "alike" : row === reference ? "chosen" : "",
              cells: [cellOf(...marks), number(format.value(figure)),
                      number(format.half(figure), " muted"), told]};
    }));
    table.className = long ? "bars dots long" : "bars dots";
    table.replaceChildren(...bodies);
  }

  // A cross table; the larger a share, the darker its cell. Long ones grow as they are scrolled.
  function cross(view, table) {
    const {heads, rows, foot} = view.cross, {state, format} = view;
    const cell = (figure, style = "") => {
      if (!figure) return make("td", {className: style}, "–");
      const made = make("td", {className: style}, format.value(figure),
        make("small", {}, format.half(figure)));
      if (!style) made.style.setProperty("--heat", `${Math.round(100 * heat(figure.value))}%`);
      return made;
    };
    const strongest = Math.max(1e-12, ...rows.flatMap((row) => row.cells.map((f) => (f ? f.value : 0))));
    const heat = (value) => value / strongest;
    const head = make("thead", {}, make("tr", {}, make("td"),
      ...heads.map((label) => make("th", {scope: "col"}, label)),
      make("th", {scope: "col", className: "weight"}, state.as === "row" ? "of all" : "together")));
    const line = (row) => make("tr", {}, make("th", {scope: "row"}, row.label),
      ...row.cells.map((figure) => cell(figure)), cell(row.total, "weight"));
    const body = make("tbody", {}, ...rows.slice(0, AT_ONCE).map(line));
    const last = make("tfoot", {}, make("tr", {},
      make("th", {scope: "row"}, state.as === "column" ? "of all" : "together"),
      ...foot.map((figure) => cell(figure, "weight")), make("td", {className: "weight"}, "100 %")));
    table.className = "heat";
    table.replaceChildren(head, body, last);
    let next = AT_ONCE;
    const box = table.parentElement;
    box.onscroll = () => {
      if (next < rows.length && box.scrollTop + 2 * box.clientHeight > box.scrollHeight) {
        body.append(...rows.slice(next, next + AT_ONCE).map(line));
        next += AT_ONCE;
      }
    };
  }

  function draw(view, table) {
    table.parentElement.onscroll = null;
    ({bars, dots, cross})[view.kind](view, table);
  }

  return {draw};
})());
