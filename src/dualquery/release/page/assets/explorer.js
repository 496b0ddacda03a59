// The explorer ties the parts together: what is chosen, what is shown, and the address that keeps it.
"use strict";
(() => {
  const {byId, make} = dualquery;
  const model = new dualquery.Model(JSON.parse(byId("release-data").textContent));
  const questions = new dualquery.Questions(model);
  const attributes = model.attributes;
  const embedded = new URLSearchParams(location.search).has("embed");
  let state = null, view = null, find = "";

  // What can be asked is what has values; a condition that is being chosen is left out.
  const asked = () => ({...state, where: state.where.filter((one) => one.codes.length)});

  function update() {
    view = new dualquery.View(questions, asked(), find);
    const problem = view.hindrance;
    byId("sentence").replaceChildren(...view.sentence.map((piece) =>
      (Array.isArray(piece) ? make("strong", {}, piece[0]) : piece)));
    const overall = problem || view.kind === "cross" || !(view.target || view.numeric) ? null
      : view.overall;
    const told = byId("sentence").dataset;
    told.answer = overall ? String(overall.value) : "";
    told.low = overall ? String(overall.low) : "";
    told.high = overall ? String(overall.high) : "";
    byId("sentence-note").textContent = problem || view.kind === "cross" ? "" : noteOfSentence();
    byId("shown-title").textContent = view.title;
    showTools(problem);
    const table = byId("shown-table");
    if (problem) table.replaceChildren(make("tbody", {}, make("tr", {}, make("td", {}, problem))));
    else dualquery.draw(view, table);
    byId("shown-note").textContent = problem ? "" : noteOfChart();
    for (const id of ["copy-sentence", "csv", "png"]) byId(id).disabled = !!problem;
    byId("command").parentElement.hidden = !!problem;
    byId("command").textContent = problem ? "" : view.command;
    byId("copied").textContent = "";
    keepAddress();
  }

  function noteOfSentence() {
    const undrawn = [state.of, state.by, ...asked().where.map((l) => l.attribute)]
      .find((a) => a !== null && !model.drawn(a));
    if (!model.uncertainty) return "This release states no interval for its answers.";
    if (undrawn !== undefined) return `No interval: no drawn query named ${attributes[undrawn].label}.`;
    return "In brackets: the range that holds the true figure in about 95 of 100 cases.";
  }

  function noteOfChart() {
    if (view.kind === "dots") {
      const base = view.chart.reference ? view.chart.reference.label : "all together";
      return `The dot is the figure, the line its 95 % interval, the upright line ${base}. Grey and ` +
        `≈: the interval overlaps that of ${base}, so the two cannot be told apart.`;
    }
    const half = "± is half of the 95 % interval, in percentage points";
    if (view.kind === "cross") return `${half}. Two numbers instead are its ends.`;
    const mark = view.chart.rows.some((row) => row.all) ? " The upright mark shows all." : "";
    const {hidden} = view.chart;
    const more = hidden && !find ? ` ${hidden.toLocaleString("en")} less frequent values are not shown.`
      : "";
    return `The thin line across the end of a bar is the 95 % interval; ${half}.${mark}${more}`;
  }

  function showTools(problem) {
    const chart = problem || view.kind === "cross" ? {} : view.chart;
    const listed = attributes[view.kind === "dots" ? state.by : state.of];
    byId("as-field").hidden = !!problem || view.kind !== "cross";
    byId("as").value = state.as;
    byId("groups-field").hidden = !!problem || view.kind === "cross" || !listed.groups;
    byId("groups").checked = state.groups;
    byId("find-field").hidden = !chart.many;
    byId("all").hidden = !chart.many || !!find;
    byId("all").textContent = state.all ? "Show the most frequent" : "Show all";
    byId("against-field").hidden = view.kind !== "dots" || !!problem;
    if (view.kind === "dots" && !problem) {
      byId("against").replaceChildren(make("option", {value: "-1"}, "all together"),
        ...chart.rows.map((row, i) => make("option", {value: String(i)}, row.label)));
      byId("against").value = String(state.against);
    }
    for (const option of byId("figure").options) {
      option.disabled = (option.value === "count" && !model.rows) ||
        (["mean", "median"].includes(option.value) && !attributes[state.of].numbers);
    }
  }

  // The form says what the state is.
  function showForm() {
    byId("figure").value = state.figure;
    byId("of").value = attributes[state.of].label;
    byId("by").value = state.by === null ? "" : attributes[state.by].label;
    byId("no-by").hidden = state.by === null;
    const numeric = state.figure === "mean" || state.figure === "median";
    const codes = new Set(state.codes);
    byId("target").replaceChildren(...(numeric ? [] : [dualquery.targetElement(model, state.of, codes,
      () => {
        state.codes = [...codes].sort((a, b) => a - b);
        if (state.figure === "count" && !codes.size) state.figure = byId("figure").value = "share";
        update();
      })]));
    byId("conditions").replaceChildren();
    state.where.forEach((one) => showCondition(one, false));
  }

  function showCondition(condition, open) {
    const element = dualquery.conditionElement(model, condition, open, update, (gone) => {
      state.where = state.where.filter((one) => one !== gone);
      byId("add").focus();
      update();
    });
    byId("conditions").append(element);
    return element;
  }

  function addCondition(position) {
    const place = state.where.findIndex((one) => one.attribute === position);
    if (place >= 0) {
      const known = byId("conditions").children[place];
      known.open = true;
      known.querySelector("summary").focus();
      return;
    }
    const condition = {attribute: position, codes: attributes[position].yesNo ? [1] : [], negated: false};
    state.where.push(condition);
    showCondition(condition, true).querySelector("select").focus();
    update();
  }

  function chooseColumn(position) {
    if (position === null || position === state.of) return;
    state.of = position;
    state.codes = attributes[position].yesNo ? [1] : [];
    if (!attributes[position].numbers && ["mean", "median"].includes(state.figure)) state.figure = "share";
    if (state.figure === "count" && !state.codes.length) state.figure = "share";
    if (state.by === position) state.by = null;
    refresh();
  }

  function chooseFigure(figure) {
    state.figure = figure;
    const attribute = attributes[state.of];
    // A number is that of some values: without any, those of the most frequent one.
    if (figure === "count" && !state.codes.length) {
      const shares = dualquery.joint(model, [state.of], null);
      state.codes = [attribute.yesNo ? 1 : shares.indexOf(Math.max(...shares))];
    }
    refresh();
  }

  function chooseBy(position) {
    state.by = position === state.of ? null : position;
    state.against = -1;
    refresh();
  }

  function refresh() {
    find = byId("find").value = "";
    showForm();
    update();
  }

  // The address

  function keepAddress() {
    const text = `#${dualquery.encode(asked(), attributes)}`;
    if (text === location.hash) return;
    try {
      history.replaceState(null, "", text);
    } catch {  // a page inside another one may not
    }
  }

  function readAddress() {
    if (!location.hash.startsWith("#q=")) return false;
    const found = dualquery.decode(location.hash, attributes);
    if (found) state = found;
    return !!found;
  }

  const address = () => location.href.split("#")[0].split("?")[0];
  const link = () => `${address()}#${dualquery.encode(asked(), attributes)}`;

  // What leaves the page: sentences, links, files

  const source = () => `Source: ${model.source}`;

  async function copy(text) {
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      const field = make("textarea", {value: text, className: "offstage"});
      document.body.append(field);
      const before = document.activeElement;
      field.select();
      done = document.execCommand("copy");
      field.remove();
      before.focus();
    }
    byId("copied").textContent = done ? `Copied: ${text}` : `Copy this: ${text}`;
  }

  function save(blob, ending) {
    const names = [state.figure, state.of, state.by].map((part) =>
      (typeof part === "number" ? attributes[part].name : part)).filter(Boolean);
    saveAs(blob, `${names.join("-").replace(/[^\w-]+/g, "_")}.${ending}`);
  }

  function saveAs(blob, download) {
    const href = URL.createObjectURL(blob);
    make("a", {href, download}).click();
    setTimeout(() => URL.revokeObjectURL(href), 10000);
  }

  // The codebook and the description, made here from what the page knows.
  function takeAway() {
    const rows = [["column", "label", "unit", "code", "label of the code"]];
    for (const one of attributes) {
      for (let code = 0; code < one.size; code++) {
        rows.push([one.name, one.label, one.unit, dualquery.cellText(one, code),
                   dualquery.labelOf(one, code).replaceAll("\u00a0", " ")]);
      }
    }
    const texts = {codebook: [dualquery.csvText(rows), "text/csv", "codebook.csv"],
                   description: [JSON.stringify(model.description, null, 1), "application/json",
                                 "tableschema.json"]};
    for (const [id, [text, type, name]] of Object.entries(texts)) {
      const blob = new Blob([text], {type}), size = blob.size;
      byId(`${id}-size`).textContent = size < 1000 ? `${size} bytes`
        : size < 1e6 ? `${(size / 1000).toFixed(0)} kB` : `${(size / 1e6).toFixed(1)} MB`;
      byId(id).addEventListener("click", () => saveAs(blob, name));
    }
    if (!model.description) byId("description").closest("tr").hidden = true;
  }

  function listen() {
    const on = (id, event, call) => byId(id).addEventListener(event, call);
    on("figure", "change", () => chooseFigure(byId("figure").value));
    on("no-by", "click", () => { chooseBy(null); byId("by").focus(); });
    on("as", "change", () => { state.as = byId("as").value; update(); });
    on("against", "change", () => { state.against = Number(byId("against").value); update(); });
    on("groups", "change", () => { state.groups = byId("groups").checked; update(); });
    on("find", "input", () => { find = byId("find").value; update(); });
    on("all", "click", () => { state.all = !state.all; update(); });
    on("copy-sentence", "click", () => copy(`${view.text} ${source()}`));
    on("copy-link", "click", () => copy(link()));
    on("copy-embed", "click", () => copy(`<iframe src="${link().replace("#", "?embed#")
      .replaceAll("&", "&amp;").replaceAll('"', "&quot;")}" width="700" height="520"></iframe>`));
    on("csv", "click", () => save(new Blob([view.csv], {type: "text/csv"}), "csv"));
    on("png", "click", () => dualquery.picture(view, source()).toBlob((blob) => save(blob, "png")));
    window.addEventListener("hashchange", () => { if (readAddress()) refresh(); });
    dualquery.combobox(attributes, "of", {
      pick: chooseColumn, shown: () => attributes[state.of].label});
    dualquery.combobox(attributes, "add", {
      pick: (position) => { if (position !== null) addCondition(position); }});
    dualquery.combobox(attributes, "by", {
      pick: chooseBy, shown: () => (state.by === null ? "" : attributes[state.by].label)});
    takeAway();
    // The columns below: a search leaves those whose words hold the text.
    const search = byId("find-column");
    if (search) search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      for (const card of document.querySelectorAll("[data-words]")) {
        card.hidden = !card.dataset.words.includes(wanted);
      }
    });
  }

  function start() {
    const covered = attributes.length, many = (count) => count.toLocaleString("en");
    byId("of-hint").textContent = covered === model.total
      ? `${many(covered)} columns: type a part of a name`
      : `${many(covered)} of ${many(model.total)} columns, those drawn most often; ask for others ` +
        "with dualquery answer";
    document.documentElement.classList.toggle("embedded", embedded);
    if (embedded) {  // the frame says where its figures are from, and leads to the whole page
      const whole = make("a", {target: "_top"}, "The whole page");
      whole.addEventListener("focus", () => { whole.href = link(); });
      whole.addEventListener("pointerenter", () => { whole.href = link(); });
      whole.href = address();
      document.querySelector("footer p").replaceChildren(source(), " ", whole);
    }
    byId("explorer-app").hidden = false;
    state = {...dualquery.plainState(model.first.of), ...model.first};
    const unread = location.hash.startsWith("#q=") && !readAddress();
    listen();
    showForm();
    update();
    if (unread) byId("copied").textContent = "The address asks for something that this page does not have.";
  }

  start();
})();
