"use strict";
// The review of a draft: what may be known of each column, its words for readers, and rules.
(() => {
  const { el } = dualquery;
  const MOST_SHOWN = 200;
  const ABOUT = [
    ["title", "Title"], ["description", "What the table is about"], ["publisher", "Publisher"],
    ["date", "Day of publication"], ["contact", "Contact"], ["licence", "Terms of use"],
    ["records", "What a row is, such as: adults"],
  ];
  const RULES = [
    ["forbid", "no record is", ""], ["if", "every record that is", "is also"],
    ["order", "column", "is at most column"], ["determines", "column", "determines column"],
  ];
  const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
  let number = 0;

  function labelled(text, field) {
    field.id = `field-${(number += 1)}`;
    return el("div", { className: "field" }, el("label", { htmlFor: field.id }, text), field);
  }

  function textField(text, of, key, changed) {
    const field = el("input", { type: "text", value: of[key] ?? "", autocomplete: "off" });
    field.addEventListener("input", () => { of[key] = field.value; changed(); });
    return labelled(text, field);
  }

  function tick(text, on, changed) {
    const field = el("input", { type: "checkbox", checked: on });
    field.addEventListener("change", () => changed(field.checked));
    return el("label", { className: "tick" }, field, el("span", {}, text));
  }

  class Review {
    constructor(form, changed) {
      this.form = form;
      this.changed = changed;
      this.known = new Set();
      this.dropped = new Set();
    }

    seen(column) {
      return this.form.draft && !this.known.has(column.name) && column.items.some((one) => one.seen);
    }

    get waiting() { return this.kept.filter((column) => this.seen(column)).length; }

    get kept() { return this.form.columns.filter((column) => !this.dropped.has(column.name)); }

    // What is sent: without the columns that are left out, and signed or not.
    toSend(draft) { return { ...this.form, columns: this.kept, draft }; }

    columns() { return this.form.columns.map((column) => this.column(column)); }

    column(column) {
      const summary = el("summary");
      const body = el("div");
      const box = el("details", { className: "column" }, summary, body);
      const title = () => {
        const size = counted(column.items.length - (column.holds === "edges" ? 1 : 0),
          column.holds === "edges" ? "bin" : "value");
        const out = this.dropped.has(column.name);
        summary.replaceChildren(
          el("span", {}, column.name),
          el("span", { className: "muted" }, column.holds === "binary" ? "0 or 1" : `${size}, ${column.type}`),
          el("span", { className: "muted" }, column.label),
          out ? el("span", { className: "mark" }, "left out")
            : this.seen(column) ? el("span", { className: "mark seen" }, "private: seen in the table")
              : el("span", { className: "mark known" }, "public"));
      };
      const changed = () => { title(); this.changed(); };
      title();
      // Thousands of columns open one by one.
      box.addEventListener("toggle", () => {
        if (box.open && !body.childElementCount) body.append(...this.inside(column, changed));
      });
      return box;
    }

    inside(column, changed) {
      const parts = [];
      if (column.remark) parts.push(el("p", { className: "remark" }, column.remark));
      parts.push(el("div", { className: "row" },
        textField("Label", column, "label", changed),
        textField("Description", column, "description", changed),
        column.holds === "edges" ? textField("Unit of its numbers", column, "unit", changed) : ""));
      const list = el("div");
      // What is drawn anew gives the focus back to where the work goes on.
      const redraw = (focus) => {
        list.replaceChildren(this.items(column, redraw, changed));
        changed();
        if (focus) [...list.querySelectorAll(focus)].pop()?.focus();
      };
      list.append(this.items(column, redraw, changed));
      parts.push(list);
      parts.push(tick("Cells may be missing", column.missing, (on) => { column.missing = on; changed(); }));
      parts.push(el("div", { className: "row" },
        textField("Words for a missing cell, with ; between", column, "missing_words", changed),
        column.type === "decimal" ? textField("Decimals", column, "decimals", changed) : ""));
      if (column.holds === "edges") {
        parts.push(tick("Everybody may know that the table reaches the first and the last edge",
          column.reached, (on) => { column.reached = on; changed(); }));
      }
      const also = Object.entries(column.kept).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
      if (also.length) parts.push(el("p", { className: "hint" }, `Also, as the file says: ${also.join(", ")}`));
      if (this.form.draft && column.items.some((one) => one.seen)) {
        const box = tick(`All of this is public knowledge about ${column.name}, whoever is in the table`,
          this.known.has(column.name), (on) => {
            if (on) this.known.add(column.name); else this.known.delete(column.name);
            redraw("");
          });
        box.classList.add("public");
        parts.push(box);
      }
      parts.push(tick("Leave this column out of the release", this.dropped.has(column.name), (on) => {
        if (on) this.dropped.add(column.name); else this.dropped.delete(column.name);
        changed();
      }));
      return parts;
    }

    // A field for one value or edge: it is the curator's as soon as it is changed.
    field(column, item, key, words, changed, shown) {
      const input = el("input", { type: "text", value: item[key], className: key, autocomplete: "off",
        "aria-label": `${column.name}: ${words}` });
      input.addEventListener("input", () => {
        item[key] = input.value;
        if (key === "text") item.seen = false;
        shown();
        changed();
      });
      return input;
    }

    // A value or an edge with its fields, its mark and its button, in a row of a table or a list.
    item(column, item, place, redraw, changed) {
      const edges = column.holds === "edges";
      const mark = el("span");
      const part = (...children) => (edges ? children : [el("td", {}, ...children)]);
      const row = el(edges ? "li" : "tr");
      const shown = () => {
        const seen = item.seen && !this.known.has(column.name);
        row.className = seen ? "seen" : "";
        mark.replaceChildren(seen ? el("span", { className: "mark seen" }, "seen") : "");
      };
      const noun = `${edges ? "edge" : "value"} ${place + 1}`;
      row.append(...part(this.field(column, item, "text", noun, changed, shown)),
        ...(edges ? [] : part(this.field(column, item, "label", `words for ${noun}`, changed, shown))),
        ...part(mark),
        ...part(el("button", { type: "button", className: "plain",
          "aria-label": `${column.name}: remove ${item.text}`,
          onclick: () => { column.items.splice(place, 1); redraw("button.add"); } }, "remove")));
      shown();
      return row;
    }

    items(column, redraw, changed) {
      if (column.holds === "binary") return el("p", { className: "hint" }, "It holds 0 or 1.");
      const edges = column.holds === "edges";
      const rows = column.items.slice(0, MOST_SHOWN)
        .map((item, place) => this.item(column, item, place, redraw, changed));
      const head = ["Values", "Words for readers"];
      const more = column.items.length - rows.length;
      return el("div", {},
        edges ? el("p", { className: "hint" }, "Edges of its bins") : "",
        edges ? el("ul", { className: "edges" }, ...rows) : el("table", { className: "items" },
          el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col" }, text)), el("td"), el("td"))),
          el("tbody", {}, ...rows)),
        more > 0 ? el("p", { className: "hint" }, `and ${counted(more, "more value")}, in the schema file`) : "",
        el("button", { type: "button", className: "add", onclick: () => {
          column.items.push({ text: "", label: "", seen: false });
          redraw("input.text");
        } }, edges ? "Add an edge" : "Add a value"));
    }

    leftOut() {
      const listed = this.form.left_out;
      const more = this.form.more;
      return [
        more ? el("p", {}, `${counted(more, "more 0/1 column")}, which the schema file lists by name alone.`) : "",
        listed.length ? el("h3", {}, "Left out") : "",
        listed.length ? el("table", { className: "plain" }, el("tbody", {}, ...listed.map((one) =>
          el("tr", {}, el("th", { scope: "row" }, one.name), el("td", {}, one.reason))))) : "",
      ].filter(Boolean);
    }

    rules() {
      const box = el("div");
      const draw = () => {
        box.replaceChildren(...this.form.rules.map((rule, place) => {
          const [, first, second] = RULES.find(([kind]) => kind === rule.kind);
          const field = (key, words) => {
            const input = el("input", { type: "text", value: rule[key], autocomplete: "off",
              spellcheck: false, "aria-label": `Rule ${place + 1}: ${words}` });
            input.addEventListener("input", () => { rule[key] = input.value; });
            return input;
          };
          return el("div", { className: "rule" },
            el("span", {}, first), field("first", first),
            second ? el("span", {}, second) : "", second ? field("second", second) : "",
            el("button", { type: "button", className: "plain", "aria-label": `Remove rule ${place + 1}`,
              onclick: () => { this.form.rules.splice(place, 1); draw(); } }, "remove"));
        }), el("div", { className: "actions" }, ...RULES.map(([kind, first, second]) =>
          el("button", { type: "button", onclick: () => {
            this.form.rules.push({ kind, first: "", second: "" });
            draw();
            box.querySelectorAll(".rule")[this.form.rules.length - 1].querySelector("input").focus();
          } }, `Add: ${first} … ${second}${second ? " …" : ""}`))));
      };
      draw();
      return box;
    }

    about() {
      return ABOUT.map(([key, words]) => textField(words, this.form.about, key, () => {}));
    }
  }

  dualquery.Review = Review;
  dualquery.counted = counted;
})();
