// Small parts of the page: elements, and a field that finds an attribute. All text goes in as text.
"use strict";
Object.assign(dualquery, (() => {
  const MOST_OPTIONS = 50;
  const byId = (id) => document.getElementById(id);

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
  function combobox(attributes, input, list, pick) {
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
      dualquery.byId(`${list.id}-note`).textContent = note;
      list.hidden = found.length === 0;
      input.setAttribute("aria-expanded", String(found.length > 0));
      mark(-1);
    };
    input.addEventListener("input", open);
    input.addEventListener("click", open);
    input.addEventListener("blur", () => { close(); dualquery.byId(`${list.id}-note`).textContent = ""; });
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

  return {byId, make, combobox};
})());
