// The explorer: choose attributes and values, see the answer and a table. It ties the parts together.
"use strict";
(() => {
  const {byId, make, combobox, unknownText, UNDRAWN} = dualquery;
  const model = new dualquery.Model(JSON.parse(byId("release-data").textContent));
  const attributes = model.attributes;
  const conditions = [];  // {attribute, codes: Set, negated, element}
  let further = null, by = null, shown = null;

  function addCondition(position, codes, focus) {
    const known = conditions.find((condition) => condition.attribute === position);
    if (known) {
      known.element.querySelector("select, input, button").focus();
      return;
    }
    const condition = {attribute: position, codes: new Set(codes), negated: false};
    condition.element = dualquery.conditionElement(model, condition, update, (gone) => {
      conditions.splice(conditions.indexOf(gone), 1);
      byId("add").focus();
      update();
    });
    conditions.push(condition);
    byId("conditions").append(condition.element);
    if (focus) condition.element.querySelector("select").focus();
    update();
  }

  function currentQuery() {
    const parity = byId("combine-parity").checked;
    return {
      kind: parity ? "parity" : "conjunction",
      literals: conditions.filter((c) => c.codes.size).map((c) => ({
        attribute: c.attribute, codes: [...c.codes].sort((a, b) => a - b), negated: c.negated,
      })),
    };
  }

  function update() {
    const query = currentQuery();
    const asked = query.literals.length > 0;
    byId("combine").hidden = conditions.length < 2;
    byId("empty").hidden = conditions.length > 0;
    for (const condition of conditions) {
      condition.element.classList.toggle("incomplete", condition.codes.size === 0);
    }
    byId("query").value = asked ? dualquery.formatQuery(query, attributes) : "";
    byId("copied").textContent = "";
    const blind = query.literals.find((literal) => !model.known(literal.attribute));
    showAnswer(query, asked, blind);
    showTable(query, asked, blind);
  }

  function showAnswer(query, asked, blind) {
    const answer = byId("answer"), count = byId("answer-count"), interval = byId("answer-interval");
    answer.dataset.answer = answer.dataset.error = "";
    if (blind) {
      answer.textContent = "unknown";
      count.textContent = unknownText(attributes[blind.attribute]);
      interval.textContent = "";
      return;
    }
    const share = asked ? model.answer(query) : 1;
    const error = asked ? dualquery.errorOfShare(model, query, share) : null;
    const low = error === null ? null : Math.max(0, share - 1.959963984540054 * error);
    const high = error === null ? null : Math.min(1, share + 1.959963984540054 * error);
    answer.textContent = asked ? dualquery.percent(share, low, high) : "100 %";
    answer.dataset.answer = String(share);
    answer.dataset.error = String(error);
    const rows = model.rows ? model.rows.toLocaleString("en") : "";
    count.textContent = !asked ? "No condition yet: every record counts."
      : model.rows ? `about ${dualquery.count(share, low, high, model.rows)} of ${rows} records` : "";
    const undrawn = query.literals.find((literal) => !model.drawn(literal.attribute));
    interval.textContent = !model.uncertainty
      ? "This release states no interval for its answers."
      : undrawn ? `No interval: no drawn query named ${attributes[undrawn.attribute].name}.`
      : error === null ? ""
      : `95 % interval: ${dualquery.interval(share, low, high)}`;
  }

  // What cannot be shown, in words; empty where a table can be.
  function hindrance(columns, blind) {
    const unknown = blind ? blind.attribute : columns.find((a) => !model.known(a));
    if (unknown !== undefined) return unknownText(attributes[unknown]);
    return "";
  }

  function showTable(query, asked, blind) {
    const columns = by === null ? [further] : [further, by];
    const words = hindrance(columns, blind);
    shown = words ? null : dualquery.crossTable(model, columns, query);
    const problem = words || (shown === undefined ? "The table has too many cells for this page."
      : shown === null ? "No synthetic record satisfies the choice." : "");
    const names = columns.map((a) => make("strong", {}, attributes[a].name));
    byId("further-caption").replaceChildren(names[0], ...(names[1] ? [" (rows) by ", names[1],
      " (columns)"] : []), asked ? " among the chosen records" : " among all records",
      asked && by === null ? "; the mark shows all records" : "");
    for (const id of ["download", "command"]) byId(id).hidden = !!problem;
    byId("further-head").hidden = !asked || by !== null || !!problem;
    byId("further-table").classList.toggle("bars", by === null || !!problem);
    byId("further-table").classList.toggle("heat", by !== null && !problem);
    if (problem) {
      byId("further-body").replaceChildren(make("tr", {}, make("td", {}, problem)));
      byId("cross-head").replaceChildren();
      return;
    }
    if (by === null) {
      const overall = asked
        ? dualquery.crossTable(model, columns, {kind: "conjunction", literals: []}) : null;
      byId("further-body").replaceChildren(...dualquery.bars(model, shown, overall));
      byId("cross-head").replaceChildren();
    } else {
      const {head, rows} = dualquery.cross(model, shown);
      byId("cross-head").replaceChildren(head);
      byId("further-body").replaceChildren(...rows);
    }
    const undrawn = columns.some((a) => !model.drawn(a));
    byId("shown-note").textContent = undrawn ? UNDRAWN
      : shown.low[0] === null ? "No intervals: their errors are unknown."
      : by === null ? "The thin line across the end of a bar is the 95 % interval."
      : "Shares of the chosen records; ± is half of the 95 % interval.";
    byId("command").textContent = dualquery.command(model, shown, query);
  }

  function download() {
    const names = shown.columns.map((a) => attributes[a].name.replace(/[^\w-]+/g, "_"));
    const link = make("a", {
      href: URL.createObjectURL(new Blob([dualquery.csv(model, shown)], {type: "text/csv"})),
      download: `${names.join("-by-") || "table"}.csv`,
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  async function copy() {
    const field = byId("query");
    let done = false;
    try {
      await navigator.clipboard.writeText(field.value);
      done = true;
    } catch {
      field.select();
      done = document.execCommand("copy");
    }
    byId("copied").textContent = done ? "copied" : "select the text and copy it";
  }

  function chooser(id, current, pick) {
    combobox(attributes, byId(id), byId(`${id}-list`), pick);
    byId(id).addEventListener("focus", () => byId(id).select());
    byId(id).addEventListener("blur", () => {
      if (id === "by" && byId(id).value.trim() === "") pick(null);
      const position = current();
      byId(id).value = position === null ? "" : attributes[position].name;
    });
  }

  function show(first, second) {
    further = first;
    by = second === first ? null : second;
    byId("further").value = attributes[further].name;
    byId("by").value = by === null ? "" : attributes[by].name;
    byId("no-by").hidden = by === null;
    update();
  }

  function start() {
    const covered = attributes.length;
    byId("add-hint").textContent = covered === model.total
      ? `${covered.toLocaleString("en")} attributes: type a part of a name`
      : `${covered.toLocaleString("en")} of ${model.total.toLocaleString("en")} attributes, those ` +
        "drawn most often; ask for others with dualquery answer";
    combobox(attributes, byId("add"), byId("add-list"), (position) => {
      byId("add").value = "";
      addCondition(position, attributes[position].binary ? [1] : [], true);
    });
    chooser("further", () => further, (position) => show(position, by));
    chooser("by", () => by, (position) => show(further, position));
    byId("no-by").addEventListener("click", () => {
      show(further, null);
      byId("by").focus();
    });
    byId("combine").addEventListener("change", update);
    byId("copy").addEventListener("click", copy);
    byId("download").addEventListener("click", download);
    byId("explorer-app").hidden = false;
    [further, by] = [model.first.show, null];
    show(model.first.show, model.first.by);
    for (const [attribute, codes] of model.first.conditions) addCondition(attribute, codes, false);
  }

  start();
})();
