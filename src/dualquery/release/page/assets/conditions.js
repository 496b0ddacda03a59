// One condition on the records: an attribute, and which of its values are meant.
"use strict";
Object.assign(dualquery, (() => {
  const MANY_VALUES = 16;
  const UNDRAWN = "No drawn query named this attribute: what is shown about it is not knowledge.";
  const unknownText = (attribute) => `Unknown: no query of this release names ` +
    `${attribute.name}, so it knows nothing about it.`;
  const make = dualquery.make;

  function conditionElement(model, condition, update, removed) {
    const attribute = model.attributes[condition.attribute];
    const side = make("select", {ariaLabel: `${attribute.name}: is or is not`},
      make("option", {value: "in"}, "is"), make("option", {value: "out"}, "is not"));
    side.addEventListener("change", () => {
      condition.negated = side.value === "out";
      update();
    });
    const remove = make("button", {type: "button", className: "remove"}, "Remove");
    remove.setAttribute("aria-label", `Remove the condition on ${attribute.name}`);
    remove.addEventListener("click", () => {
      condition.element.remove();
      removed(condition);
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
    let ends = [], groups = null;
    // The two ends say what is ticked, where that is one range.
    const showRange = () => {
      const codes = [...condition.codes].sort((a, b) => a - b);
      const low = codes[0], high = codes[codes.length - 1];
      const one = codes.length > 0 && high - low === codes.length - 1 && high < attribute.proper;
      ends.forEach((chooser, i) => { chooser.value = one ? String(i ? high : low) : ""; });
      if (groups) {
        const whole = [...new Set(codes.map((code) => attribute.groupOf[code]))];
        const size = attribute.groupOf.filter((group) => group === whole[0]).length;
        groups.value = whole.length === 1 && size === codes.length ? String(whole[0]) : "";
      }
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
    if (attribute.groups) {
      groups = make("select", {ariaLabel: `${attribute.name}: a whole group`},
        make("option", {value: ""}, "group …"));
      attribute.groups.forEach((name, i) => {
        groups.append(make("option", {value: String(i)}, `group ${name}`));
      });
      groups.addEventListener("change", () => {
        if (groups.value !== "") set((code) => attribute.groupOf[code] === Number(groups.value));
      });
      showRange();
      tools.append(groups);
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
    const note = !model.known(condition.attribute) ? unknownText(attribute)
      : model.drawn(condition.attribute) ? "" : UNDRAWN;
    return make("fieldset", {className: "condition"}, make("legend", {}, attribute.name),
      make("div", {className: "side"}, side, remove), tools, values,
      make("p", {className: "hint"}, note));
  }

  return {conditionElement, unknownText, UNDRAWN};
})());
