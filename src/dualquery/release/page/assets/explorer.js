// The explorer: choose attributes and values, see the answer. All text goes in as text.
"use strict";
(() => {
  const MOST_OPTIONS = 50, MOST_BARS = 40, MANY_VALUES = 16;
  const UNDRAWN = "No drawn query named this attribute: what is shown about it is not knowledge.";
  const unknownText = (position) => `Unknown: no query of this release names ` +
    `${attributes[position].name}, so it knows nothing about it.`;
  const byId = (id) => document.getElementById(id);
  const model = new dualquery.Model(JSON.parse(byId("release-data").textContent));
  const attributes = model.attributes;
  const conditions = [];  // {attribute, codes: Set, negated, element}
  let further = null;

  function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in element && name !== "list") element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  // A combobox after the ARIA pattern: type, arrows, Enter, Escape.
  function combobox(input, list, pick) {
    let found = [], active = -1;
    const close = () => {
      list.hidden = true;
      active = -1;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
    };
    const choose = (position) => {
      close();
      pick(position);
    };
    const mark = (place) => {
      const options = list.querySelectorAll("[role=option]");
      options.forEach((option, i) => option.setAttribute("aria-selected", String(i === place)));
      active = place;
      if (place >= 0) {
        input.setAttribute("aria-activedescendant", options[place].id);
        options[place].scrollIntoView({block: "nearest"});
      } else input.removeAttribute("aria-activedescendant");
    };
    const open = () => {
      const result = dualquery.search(attributes, input.value, MOST_OPTIONS);
      found = result.found;
      list.replaceChildren(...found.map((position, i) => {
        const option = make("li", {id: `${list.id}-${i}`}, attributes[position].name);
        option.setAttribute("role", "option");
        option.setAttribute("aria-selected", "false");
        option.addEventListener("mousedown", (event) => {
          event.preventDefault();
          choose(position);
        });
        return option;
      }));
      const more = result.count - found.length;
      const note = found.length === 0 ? "no attribute has this in its name"
        : more > 0 ? `and ${more.toLocaleString("en")} more: type more of the name` : "";
      byId(`${list.id}-note`).textContent = note;
      list.hidden = found.length === 0;
      input.setAttribute("aria-expanded", String(found.length > 0));
      mark(-1);
    };
    input.addEventListener("input", open);
    input.addEventListener("click", open);
    input.addEventListener("blur", () => { close(); byId(`${list.id}-note`).textContent = ""; });
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        if (list.hidden) open();
        if (!found.length) return;
        const step = event.key === "ArrowDown" ? 1 : -1;
        mark((active + step + found.length + (active < 0 && step < 0 ? 1 : 0)) % found.length);
      } else if (event.key === "Enter") {
        event.preventDefault();
        if (list.hidden) open();
        else if (active >= 0) choose(found[active]);
        else if (found.length) choose(found[0]);
      } else if (event.key === "Escape") {
        close();
      }
    });
  }

  function addCondition(position, codes, focus) {
    const known = conditions.find((condition) => condition.attribute === position);
    if (known) {
      known.element.querySelector("select, input, button").focus();
      return;
    }
    const condition = {attribute: position, codes: new Set(codes), negated: false};
    condition.element = conditionElement(condition);
    conditions.push(condition);
    byId("conditions").append(condition.element);
    if (focus) condition.element.querySelector("select").focus();
    update();
  }

  function conditionElement(condition) {
    const attribute = attributes[condition.attribute];
    const side = make("select", {ariaLabel: `${attribute.name}: is or is not`},
      make("option", {value: "in"}, "is"), make("option", {value: "out"}, "is not"));
    side.addEventListener("change", () => {
      condition.negated = side.value === "out";
      update();
    });
    const remove = make("button", {type: "button", className: "remove"}, "Remove");
    remove.setAttribute("aria-label", `Remove the condition on ${attribute.name}`);
    remove.addEventListener("click", () => {
      conditions.splice(conditions.indexOf(condition), 1);
      condition.element.remove();
      byId("add").focus();
      update();
    });
    const boxes = [];
    const values = make("div", {className: "values"});
    for (let code = 0; code < attribute.size; code++) {
      const box = make("input", {type: "checkbox", checked: condition.codes.has(code)});
      box.addEventListener("change", () => {
        if (box.checked) condition.codes.add(code);
        else condition.codes.delete(code);
        showRange();
        update();
      });
      boxes.push(box);
      values.append(make("label", {className: "value"}, box, dualquery.labelOf(attribute, code)));
    }
    const set = (wanted) => {
      condition.codes = new Set();
      boxes.forEach((box, code) => {
        box.checked = wanted(code);
        if (box.checked) condition.codes.add(code);
      });
      showRange();
      update();
    };
    let ends = [];
    // The two ends say what is ticked, where that is one range.
    const showRange = () => {
      const codes = [...condition.codes].sort((a, b) => a - b);
      const low = codes[0], high = codes[codes.length - 1];
      const one = codes.length > 0 && high - low === codes.length - 1 && high < attribute.proper;
      ends.forEach((chooser, i) => { chooser.value = one ? String(i ? high : low) : ""; });
    };
    const tools = make("div", {className: "tools"});
    if (attribute.size > 3) {
      const all = make("button", {type: "button"}, "All");
      const none = make("button", {type: "button"}, "None");
      all.setAttribute("aria-label", `All values of ${attribute.name}`);
      none.setAttribute("aria-label", `No value of ${attribute.name}`);
      all.addEventListener("click", () => set(() => true));
      none.addEventListener("click", () => set(() => false));
      tools.append(all, none);
    }
    if ((attribute.edges || attribute.ordered) && attribute.proper > 2) {
      ends = ["from", "to"].map((word) => {
        const chooser = make("select", {ariaLabel: `${attribute.name}: ${word}`},
          make("option", {value: ""}, "…"));
        for (let code = 0; code < attribute.proper; code++) {
          chooser.append(make("option", {value: String(code)}, dualquery.labelOf(attribute, code)));
        }
        return chooser;
      });
      ends.forEach((end, i) => {
        end.addEventListener("change", () => {
          let low = Number(ends[0].value || 0);
          let high = Number(ends[1].value || attribute.proper - 1);
          if (low > high) [low, high] = i ? [high, high] : [low, low];
          set((code) => code >= low && code <= high);
        });
      });
      showRange();
      tools.append(make("span", {className: "range"}, "from ", ends[0], " to ", ends[1]));
    }
    if (attribute.size > MANY_VALUES) {
      const filter = make("input", {type: "search", placeholder: "find a value"});
      filter.setAttribute("aria-label", `Find a value of ${attribute.name}`);
      filter.addEventListener("input", () => {
        const wanted = filter.value.trim().toLowerCase();
        boxes.forEach((box) => {
          box.parentElement.hidden = !box.parentElement.textContent.toLowerCase().includes(wanted);
        });
      });
      tools.append(filter);
      values.classList.add("many");
      values.tabIndex = 0;
      values.setAttribute("role", "group");
      values.setAttribute("aria-label", `Values of ${attribute.name}`);
    }
    const note = !model.known(condition.attribute) ? unknownText(condition.attribute)
      : model.drawn(condition.attribute) ? "" : UNDRAWN;
    return make("fieldset", {className: "condition"}, make("legend", {}, attribute.name),
      make("div", {className: "side"}, side, remove), tools, values,
      make("p", {className: "hint"}, note));
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

  function percent(share) {
    if (share > 0 && share < 0.0001) return "< 0.01 %";
    return `${(100 * share).toFixed(2)} %`;
  }

  function update() {
    const query = currentQuery();
    const asked = query.literals.length > 0;
    const share = asked ? model.answer(query) : 1;
    byId("combine").hidden = conditions.length < 2;
    byId("empty").hidden = conditions.length > 0;
    for (const condition of conditions) {
      condition.element.classList.toggle("incomplete", condition.codes.size === 0);
    }
    byId("answer").textContent = percent(share);
    byId("answer").dataset.answer = String(share);
    byId("answer-exact").textContent = asked
      ? `share ${share.toFixed(12)}` +
        (model.rows ? `, about ${Math.round(share * model.rows).toLocaleString("en")} of ` +
          `${model.rows.toLocaleString("en")} records` : "")
      : "no condition yet: every record counts";
    const error = asked ? model.error(query, share) : null;
    byId("answer").dataset.error = String(error);
    const undrawn = query.literals.find((literal) => !model.drawn(literal.attribute));
    byId("answer-interval").textContent = !model.uncertainty
      ? "This release states no interval for its answers."
      : undrawn ? `No interval: no drawn query named ${attributes[undrawn.attribute].name}.`
      : error === null ? ""
        : `95 % interval: ${percent(Math.max(0, share - 1.96 * error))} to ` +
          `${percent(Math.min(1, share + 1.96 * error))}`;
    byId("query").value = asked ? dualquery.formatQuery(query, attributes) : "";
    byId("copied").textContent = "";
    const blind = query.literals.find((literal) => !model.known(literal.attribute));
    if (blind) {
      byId("answer").textContent = "unknown";
      byId("answer").dataset.answer = "";
      byId("answer").dataset.error = "null";
      byId("answer-exact").textContent = unknownText(blind.attribute);
      byId("answer-interval").textContent = "";
    }
    draw(query, asked, blind);
  }

  function draw(query, asked, blind) {
    const attribute = attributes[further];
    if (blind || !model.known(further)) {
      byId("further-head").hidden = true;
      byId("further-caption").replaceChildren("Distribution of ",
        make("strong", {}, attribute.name));
      byId("further-body").replaceChildren(make("tr", {}, make("td", {},
        unknownText(blind ? blind.attribute : further))));
      return;
    }
    const overall = model.distribution(further, {kind: "conjunction", literals: []});
    const given = model.distribution(further, query);
    const body = byId("further-body");
    const caption = byId("further-caption");
    caption.replaceChildren("Distribution of ", make("strong", {}, attribute.name),
      asked ? " among the chosen records; the line marks all records" : " among all records");
    if (given === null) {
      const own = query.literals.some((literal) => literal.attribute === further);
      body.replaceChildren(make("tr", {}, make("td", {}, own
        ? "This attribute is part of the parity; choose another one."
        : "No synthetic record satisfies the choice.")));
      return;
    }
    let codes = given.map((_, code) => code);
    const hidden = codes.length - MOST_BARS;
    if (hidden > 0) {
      codes = codes.sort((a, b) => given[b] - given[a] || a - b).slice(0, MOST_BARS);
      if (attribute.edges || attribute.ordered) codes.sort((a, b) => a - b);
    }
    const widest = Math.max(...codes.map((code) => Math.max(given[code], overall[code])), 1e-12);
    const rows = codes.map((code) => {
      const bar = make("i");
      bar.style.width = `${(100 * given[code]) / widest}%`;
      const cell = make("td", {className: "bar"}, bar);
      cell.setAttribute("aria-hidden", "true");
      if (asked) {
        const line = make("b");
        line.style.left = `${(100 * overall[code]) / widest}%`;
        cell.append(line);
      }
      const label = make("th", {scope: "row"}, dualquery.labelOf(attribute, code));
      const numbers = [make("td", {className: "number"}, percent(given[code]))];
      if (asked) numbers.push(make("td", {className: "number muted"}, percent(overall[code])));
      return make("tr", {}, label, cell, ...numbers);
    });
    if (hidden > 0) {
      rows.push(make("tr", {}, make("td", {colSpan: 4}, `and ${hidden} smaller ones`)));
    }
    if (!model.drawn(further)) rows.push(make("tr", {}, make("td", {colSpan: 4}, UNDRAWN)));
    byId("further-head").hidden = !asked;
    body.replaceChildren(...rows);
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

  function start() {
    const covered = attributes.length;
    byId("add-hint").textContent = covered === model.total
      ? `${covered.toLocaleString("en")} attributes: type a part of a name`
      : `${covered.toLocaleString("en")} of ${model.total.toLocaleString("en")} attributes, those ` +
        "drawn most often; ask for others with dualquery answer";
    combobox(byId("add"), byId("add-list"), (position) => {
      byId("add").value = "";
      addCondition(position, attributes[position].binary ? [1] : [], true);
    });
    combobox(byId("further"), byId("further-list"), (position) => {
      further = position;
      byId("further").value = attributes[position].name;
      update();
    });
    byId("further").addEventListener("focus", () => byId("further").select());
    byId("further").addEventListener("blur", () => {
      byId("further").value = attributes[further].name;
    });
    byId("combine").addEventListener("change", update);
    byId("copy").addEventListener("click", copy);
    const [example, beside] = model.examples;
    further = beside;
    byId("further").value = attributes[further].name;
    byId("explorer-app").hidden = false;
    const shares = model.distribution(example, {kind: "conjunction", literals: []});
    addCondition(example, [shares.indexOf(Math.max(...shares))], false);
  }

  start();
})();
