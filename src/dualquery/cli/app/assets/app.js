"use strict";
// The steps from a table to a release.
(() => {
  const { el, ask, counted } = dualquery;
  const by = (id) => document.getElementById(id);
  const STEPS = [["table", "Table"], ["review", "Review"], ["check", "Check"], ["plan", "Plan"],
    ["release", "Release"], ["look", "Look"]];
  let review = null;
  let reached = 0;
  let looked = "";
  let watching = null;

  const fail = (error) => { by("failed").textContent = error.message; };

  // What takes a while: says so, and shows what went wrong.
  const doing = (words, work) => async (event) => {
    event?.preventDefault();
    by("failed").textContent = "";
    by("busy").textContent = words;
    document.body.setAttribute("aria-busy", "true");
    let said = "";
    try {
      said = await work(event);
    } catch (error) {
      fail(error);
    } finally {
      if (by("busy")) by("busy").textContent = said ?? "";
      document.body.removeAttribute("aria-busy");
    }
  };

  function steps(current) {
    by("steps").replaceChildren(...STEPS.map(([name, words], place) => el("li", {}, el("button", {
      type: "button", disabled: place > reached, "aria-current": name === current ? "step" : null,
      onclick: () => show(name),
    }, words))));
  }

  function show(name) {
    reached = Math.max(reached, STEPS.findIndex(([step]) => step === name));
    for (const [step] of STEPS) by(step).hidden = step !== name;
    steps(name);
    by("failed").textContent = "";
    by(`${name}-title`).focus();
    if (name === "plan") planned();
    if (name === "release") promise();
  }

  // ---- table ----------------------------------------------------------------------------------
  const options = (names) => names.map((name) => el("option", { value: name }));

  async function list() {
    const found = await ask("folder");
    by("folder").textContent = found.folder;
    by("tables").replaceChildren(...options(found.tables));
    by("schemas").replaceChildren(...options(found.schemas));
    by("ledgers").replaceChildren(...options(found.ledgers));
    by("table-picks").replaceChildren(...found.tables.slice(0, 20).map((name) => el("li", {},
      el("button", { type: "button", onclick: () => { by("table-path").value = name; chosen(); } }, name))));
    list.schemas = found.schemas;
    const earlier = [
      ...found.unfinished.map((run) => el("li", {}, `${run.out}: a release that was stopped `,
        el("button", { type: "button", onclick: () => again(run) }, `Go on with ${run.out}`))),
      ...found.releases.map((name) => el("li", {}, el("button", { type: "button", onclick: () => {
        looked = name;
        reached = STEPS.length - 1;
        toLook();
      } }, `Look at ${name}`))),
    ];
    by("earlier").replaceChildren(...(earlier.length
      ? [el("h3", {}, "Or go on with an earlier one"), el("ul", { className: "picks" }, ...earlier)] : []));
  }

  function chosen() {
    const stem = by("table-path").value.replace(/^(sqlite|duckdb):/, "").replace(/#.*/, "")
      .replace(/\.(gz|bz2|zst)$/, "").replace(/\.[^./]+$/, "");
    by("schema-path").value = stem ? `${stem}.schema.toml` : "";
    there();
  }

  const known = () => (list.schemas ?? []).includes(by("schema-path").value);

  function there() {
    by("begin").textContent = known() ? "Go on with the schema file" : "Draft a schema";
    by("anew").hidden = !known();
    by("schema-hint").textContent = known() ? "This file is there." : "It will be written.";
  }

  const table = () => ({
    table: by("table-path").value, schema: by("schema-path").value,
    encoding: by("encoding").value, sheet: by("sheet").value,
  });

  function reviewing(form) {
    review = new dualquery.Review(form, reviewed);
    by("columns").replaceChildren(...review.columns());
    by("left-out").replaceChildren(...review.leftOut());
    by("rules").replaceChildren(review.rules());
    by("about").replaceChildren(...review.about());
    const units = [form.persons, ...form.left_out.map((one) => one.name)].filter(Boolean);
    by("units").replaceChildren(...options([...new Set(units)]));
    by("unit").value ||= form.persons;
    reached = form.draft ? 1 : Math.max(reached, 2);
    reviewed();
    show("review");
  }

  function reviewed() {
    const { form, waiting } = review;
    by("review-stamp").hidden = !form.draft;
    by("sign").disabled = waiting > 0;
    by("save").textContent = form.draft ? "Save the draft" : "Save";
    by("sign").textContent = form.draft ? "Sign the schema" : "Save, and check the table";
    by("save").hidden = !form.draft;
    by("review-state").textContent = !form.draft ? "This schema is signed."
      : waiting ? `${counted(waiting, "column")} to review: open each, and say that it is public.`
        : "All columns are reviewed. Your signature removes the line draft = true.";
  }

  const save = (draft) => async () => {
    const form = await ask("save", { ...table(), form: review.toSend(draft) });
    if (draft) return "The draft is saved.";
    reviewing(form);
    show("check");
    return "";
  };

  // ---- check ----------------------------------------------------------------------------------
  function checked(found) {
    const per = new Map(review.kept.map((column) => [column.name, []]));
    for (const one of found.problems) {
      const told = el("p", { className: "problem" }, one.text,
        one.count ? ` [${counted(one.count, "cell")}${one.examples.length ? `: ${one.examples.join(", ")}` : ""}]` : "");
      if (!per.has(one.column)) per.set(one.column, []);
      per.get(one.column).push(told);
    }
    by("findings").replaceChildren(el("table", { className: "plain" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Column"), el("th", { scope: "col" }, "Finding"))),
      el("tbody", {}, ...[...per].map(([name, told]) => el("tr", {},
        el("th", { scope: "row" }, name || "the table"),
        el("td", {}, ...(told.length ? told : [el("span", { className: "muted" }, "fits")])))))));
    by("check-notes").replaceChildren(...found.notes.map((note) => el("li", {}, note)));
    by("check-result").textContent = found.ok ? `${counted(found.rows, "row")} fit the schema.`
      : `${counted(found.problems.length, "problem")}: a release would refuse the table. Mend the table, `
        + "or change the schema, or choose above what happens to such cells.";
    by("to-plan").disabled = !found.ok;
    if (found.ok) by("rows").value = found.rows;
  }

  // ---- plan -----------------------------------------------------------------------------------
  const usualDelta = (rows) => (rows > 0 ? `1e-${Math.ceil(2 * Math.log10(rows) - 1e-9)}` : "");
  const plan = dualquery.newest();
  let last = 0;

  const settings = () => ({
    ...table(), epsilon: by("epsilon").value, delta: by("delta").value || usualDelta(Number(by("rows").value)),
    unit: by("unit").value, "most-records": by("most-records").value, queries: by("queries").value,
    "out-of-domain": by("treatment").value, ledger: by("ledger").value,
    weigh: by("unit").value ? "person" : "",
  });

  const per = (share) => `${(100 * share).toPrecision(2)} %`;

  async function planned() {
    const epsilon = Number(by("epsilon").value);
    const rows = Number(by("rows").value);
    if (!by("delta").value) by("delta").placeholder = usualDelta(rows);
    if (!(epsilon > 0) || !(rows > 0)) return;
    const odds = Math.exp(epsilon);
    by("odds").textContent = `Whatever somebody knows about a person, odds of 1:1 become at most `
      + `${odds < 1000 ? odds.toPrecision(2) : Math.round(odds).toLocaleString("en")}:1, a probability of `
      + `50 % at most ${per(odds / (1 + odds))}.`;
    by("visible").textContent = "…";
    try {
      const made = await plan("plan", { ...settings(), rows });
      if (made === null) return;
      const share = made.visible;
      by("visible").textContent = share === null
        ? "This plan asks queries one by one; how exact they are is known after the release."
        : `A value, or a pair of values, is measured to within ${per(share)} of the rows, which is `
          + `${counted(Math.ceil(share * rows), "row")}, in 95 of 100 cases. What is rarer than that drowns in noise.`;
      const relation = made.visible_relation;
      if (relation !== null) {
        by("visible").textContent += relation < 1
          ? ` Correlations from ${relation.toPrecision(2)} on stand out of the noise, typically.`
          : " No relation between two columns will stand out of the noise.";
      }
      by("costs").textContent = `It takes about ${counted(Math.ceil(made.seconds), "second")} on two cores, and `
        + `${Math.ceil(made.memory_bytes / 2 ** 20).toLocaleString("en")} MiB.`;
    } catch (error) {
      by("visible").textContent = error.message;
      by("costs").textContent = "";
    }
  }

  function soon() {
    clearTimeout(last);
    last = setTimeout(planned, 300);
  }

  function account(found) {
    const figure = (value) => value.toPrecision(3);
    const rows = found.releases.map((one) => el("tr", {}, el("th", { scope: "row" }, one.note || "without a note"),
      el("td", {}, one.state), el("td", { className: "number" }, figure(one.epsilon))));
    by("account").replaceChildren(
      el("p", {}, `${found.label}: spent ε = ${figure(found.spent)} of ${found.total} at δ = ${found.delta}.`),
      ...found.warnings.map((line) => el("p", { className: "problem" }, line)),
      rows.length ? el("table", { className: "plain" }, el("thead", {}, el("tr", {},
        ...["Release", "State", "ε alone"].map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, ...rows)) : "");
  }

  // ---- release --------------------------------------------------------------------------------
  function promise() {
    const now = settings();
    by("promise").textContent = `${now.table}, by the rules of ${now.schema}: ε = ${now.epsilon}, δ = ${now.delta}`
      + `${now.unit ? `, for all rows of one ${now.unit}` : ", for each row"}`
      + `${now.ledger ? `, charged to ${now.ledger}` : ", not charged to a ledger"}.`;
    by("out").value ||= now.table.split("/").pop().replace(/[.#:].*/, "").concat("-release");
  }

  function ran(now) {
    by("run").hidden = now.state === "";
    if (now.state === "") return;
    const seconds = `${now.seconds.toFixed(0)} s`;
    const words = {
      running: now.stopping ? "stopping …" : now.stage.name,
      done: `Done in ${seconds}: ${now.out}`,
      stopped: now.resumable ? `Stopped after ${seconds}. What was paid for is kept.` : `Stopped after ${seconds}, before anything was paid for.`,
      failed: `Failed after ${seconds}: ${now.error}`,
    }[now.state];
    if (by("stage").textContent !== words) by("stage").textContent = words;
    by("bar").hidden = now.state !== "running";
    if (now.stage.total) { by("bar").max = now.stage.total; by("bar").value = now.stage.done; } else by("bar").removeAttribute("value");
    by("run-said").replaceChildren(...now.said.map((line) => el("li", {}, line)));
    by("start").disabled = now.state === "running" || now.resumable;
    by("cancel").hidden = now.state !== "running";
    by("resume").hidden = !now.resumable;
    by("to-look").hidden = now.state !== "done";
    if (now.state === "done") { looked = now.out; list().catch(fail); }
  }

  async function watch() {
    clearTimeout(watching);
    try {
      const now = await ask("progress");
      ran(now);
      if (now.state === "running") watching = setTimeout(watch, 500);
    } catch (error) {
      fail(error);
    }
  }

  const start = (resume) => doing("starting", async () => {
    ran(await ask("release", { ...settings(), out: by("out").value, resume }));
    await watch();
  });

  function again(run) {
    for (const [id, key] of [["table-path", "table"], ["schema-path", "schema"], ["encoding", "encoding"],
      ["sheet", "sheet"], ["epsilon", "epsilon"], ["delta", "delta"], ["unit", "unit"], ["most-records", "most-records"],
      ["queries", "queries"], ["treatment", "out-of-domain"], ["ledger", "ledger"], ["out", "out"]]) by(id).value = run[key] ?? "";
    show("release");
    start(true)();
  }

  // ---- look -----------------------------------------------------------------------------------
  function toLook() {
    by("published").textContent = `The folder ${looked} may be published. Keep drafts, checks and comparisons to yourself.`;
    by("page-frame").hidden = by("private-frame").hidden = true;
    show("look");
  }

  async function frame(box, title, told) {
    const { address } = await ask("show", { out: looked, ...told });
    by(box).hidden = false;
    by(box).replaceChildren(el("p", {}, title), el("iframe", { src: address, title }));
    by(box).scrollIntoView();
  }

  async function evaluate() {
    if (!by("table-path").value) throw new Error("choose the table first, on the first step");
    const found = await ask("evaluate", { ...table(), out: looked, "out-of-domain": by("treatment").value });
    await frame("private-frame", `NOT FOR PUBLICATION: computed from the private table, and kept as ${found.report}`, { private: true });
  }

  // ---- all together ---------------------------------------------------------------------------
  by("table-path").addEventListener("input", chosen);
  by("schema-path").addEventListener("input", there);
  const begin = (step, anew) => async () => {
    reviewing(await ask(step, { ...table(), anew }));
    await list();
  };
  by("table-form").addEventListener("submit",
    doing("reading …", (event) => begin(known() ? "schema" : "draft", false)(event)));
  by("anew").addEventListener("click", doing("reading the table", begin("draft", true)));
  by("save").addEventListener("click", doing("saving", save(true)));
  by("sign").addEventListener("click", doing("saving", save(false)));
  by("check-form").addEventListener("submit", doing("reading the table", async () => checked(await ask("check", {
    ...table(), "out-of-domain": by("treatment").value }))));
  by("to-plan").addEventListener("click", () => show("plan"));
  by("epsilon-slider").addEventListener("input", () => {
    by("epsilon").value = Number((10 ** Number(by("epsilon-slider").value)).toPrecision(2));
    soon();
  });
  by("epsilon").addEventListener("input", () => {
    by("epsilon-slider").value = Math.log10(Number(by("epsilon").value) || 0.01);
    soon();
  });
  for (const id of ["delta", "rows", "unit", "most-records", "queries"]) by(id).addEventListener("input", soon);
  by("ledger-form").addEventListener("submit", doing("reading the ledger", async () => account(await ask("ledger", { ledger: by("ledger").value }))));
  by("ledger-create").addEventListener("click", doing("writing the ledger", async () => {
    const { delta, unit } = settings();
    by("ledger").value ||= "budget.ledger.json";
    account(await ask("ledger", { create: true, ledger: by("ledger").value, epsilon: by("total").value, delta, unit }));
  }));
  by("to-release").addEventListener("click", () => show("release"));
  by("release-form").addEventListener("submit", start(false));
  by("resume").addEventListener("click", start(true));
  by("cancel").addEventListener("click", doing("", async () => ran(await ask("cancel"))));
  by("to-look").addEventListener("click", toLook);
  by("show").addEventListener("click", doing("loading the page", () => frame("page-frame", `The page of ${looked}`, {})));
  by("evaluate").addEventListener("click", doing("comparing with the table", evaluate));
  by("open").addEventListener("click", doing("", async () => {
    const { path, shown } = await ask("open", { out: looked });
    by("published").textContent = shown ? `Opened ${path}` : `The folder is ${path}`;
  }));
  by("close").addEventListener("click", doing("", async () => {
    await ask("close");
    document.body.replaceChildren(el("main", {}, el("h1", {}, "Closed"), el("p", {}, "This window can be closed, too.")));
  }));

  doing("", async () => {
    await dualquery.enter();
    await list();
    show("table");
    ran(await ask("progress"));
    await watch();
  })();
})();
