// The values of a column to tick: what is asked about, or a condition on the records.
"use strict";
Object.assign(dualquery, (() => {
  const MANY_VALUES = 16, MOST_BOXES = 200;
  const make = dualquery.make;

  // Boxes for the values of a column, with ranges, groups and a search where they help. `codes` is
  // a set that is changed in place; `update` is called after each change.
  function valueBoxes(attribute, codes, update) {
    const values = make("div", {className: "values"}), boxes = new Map();
    const box = (code) => {
      const input = make("input", {type: "checkbox", checked: codes.has(code)});
      input.addEventListener("change", () => {
        if (input.checked) codes.add(code);
        else codes.delete(code);
        showRange();
        update();
      });
      boxes.set(code, input);
      return make("label", {className: "value"}, input, dualquery.labelOf(attribute, code));
    };
    const set = (wanted) => {
      codes.clear();
      for (let code = 0; code < attribute.size; code++) if (wanted(code)) codes.add(code);
      boxes.forEach((input, code) => { input.checked = codes.has(code); });
      showRange();
      update();
    };
    let ends = [], groups = null;
    // The two ends say what is ticked, where that is one range.
    const showRange = () => {
      const sorted = [...codes].sort((a, b) => a - b);
      const low = sorted[0], high = sorted[sorted.length - 1];
      const one = sorted.length > 0 && high - low === sorted.length - 1 && high < attribute.proper;
      ends.forEach((chooser, i) => { chooser.value = one ? String(i ? high : low) : ""; });
      if (groups) {
        const whole = [...new Set(sorted.map((code) => attribute.groupOf[code]))];
        const size = attribute.groupOf.filter((group) => group === whole[0]).length;
        groups.value = whole.length === 1 && size === sorted.length ? String(whole[0]) : "";
      }
    };
    const tools = make("div", {className: "tools"});
    if (attribute.size > 3) {
      const all = make("button", {type: "button"}, "All");
      const none = make("button", {type: "button"}, "None");
      all.setAttribute("aria-label", `All values of ${attribute.label}`);
      none.setAttribute("aria-label", `No value of ${attribute.label}`);
      all.addEventListener("click", () => set(() => true));
      none.addEventListener("click", () => set(() => false));
      tools.append(all, none);
    }
    if (attribute.sequence && attribute.proper > 2) {
      ends = ["from", "to"].map((word) => {
        const chooser = make("select", {ariaLabel: `${attribute.label}: ${word}`},
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
      tools.append(make("span", {className: "range"}, "from ", ends[0], " to ", ends[1]));
    }
    if (attribute.groups) {
      groups = make("select", {ariaLabel: `${attribute.label}: a whole group`},
        make("option", {value: ""}, "group …"));
      attribute.groups.forEach((name, i) => {
        groups.append(make("option", {value: String(i)}, `group ${name}`));
      });
      groups.addEventListener("change", () => {
        if (groups.value !== "") set((code) => attribute.groupOf[code] === Number(groups.value));
      });
      tools.append(groups);
    }
    // Of very many values, those that are ticked or found have a box.
    const fill = (wanted) => {
      const fits = (code) => dualquery.labelOf(attribute, code).toLowerCase().includes(wanted);
      const every = Array.from({length: attribute.size}, (_, code) => code);
      const found = every.filter((code) => codes.has(code) || fits(code));
      found.sort((a, b) => codes.has(b) - codes.has(a) || a - b);
      boxes.clear();
      const order = attribute.size > MOST_BOXES ? found : found.sort((a, b) => a - b);
      values.replaceChildren(...order.slice(0, MOST_BOXES).map(box));
      if (found.length > MOST_BOXES) {
        values.append(make("span", {className: "muted"},
          `and ${(found.length - MOST_BOXES).toLocaleString("en")} more: find them by name`));
      }
    };
    fill("");
    showRange();
    if (attribute.size > MANY_VALUES) {
      const filter = make("input", {type: "search", placeholder: "find a value"});
      filter.setAttribute("aria-label", `Find a value of ${attribute.label}`);
      filter.addEventListener("input", () => fill(filter.value.trim().toLowerCase()));
      tools.append(filter);
      values.classList.add("many");
      values.tabIndex = 0;
      values.setAttribute("role", "group");
      values.setAttribute("aria-label", `Values of ${attribute.label}`);
    }
    return [tools, values];
  }

  function noteOf(model, position) {
    return !model.known(position) ? dualquery.unknownText(model.attributes[position])
      : model.drawn(position) ? "" : dualquery.UNDRAWN;
  }

  // What is asked about: which values of the column count.
  function targetElement(model, position, codes, update) {
    const attribute = model.attributes[position];
    return make("fieldset", {className: "condition"},
      make("legend", {}, `Which ${attribute.label}?`), ...valueBoxes(attribute, codes, update),
      make("p", {className: "hint"}, noteOf(model, position)));
  }

  // One condition on the records; it folds to one line.
  function conditionElement(model, condition, open, update, removed) {
    const attribute = model.attributes[condition.attribute], codes = new Set(condition.codes);
    const summary = make("summary", {});
    const tell = () => {
      summary.textContent = codes.size
        ? dualquery.literalWords(attribute, condition.codes, condition.negated)
        : `${attribute.label}: choose values`;
    };
    const changed = () => {
      condition.codes = [...codes].sort((a, b) => a - b);
      tell();
      update();
    };
    const side = make("select", {ariaLabel: `${attribute.label}: is or is not`},
      make("option", {value: "in"}, "is"), make("option", {value: "out"}, "is not"));
    side.value = condition.negated ? "out" : "in";
    side.addEventListener("change", () => {
      condition.negated = side.value === "out";
      changed();
    });
    const remove = make("button", {type: "button", className: "remove"}, "Remove");
    remove.setAttribute("aria-label", `Remove the condition on ${attribute.label}`);
    const details = make("details", {className: "condition", open}, summary,
      make("div", {className: "side"}, side, remove), ...valueBoxes(attribute, codes, changed),
      make("p", {className: "hint"}, noteOf(model, condition.attribute)));
    remove.addEventListener("click", () => {
      details.remove();
      removed(condition);
    });
    tell();
    return details;
  }

  return {targetElement, conditionElement};
})());
