// Small parts of the page: elements, and a field that finds a column. All text goes in as text.
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
  function combobox(attributes, id, {pick, shown = () => "", fits}) {
    const input = byId(id), list = byId(`${id}-list`), note = byId(`${id}-list-note`);
    let found = [], active = -1, typed = false;
    const close = () => {
      list.hidden = true;
      active = -1;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
    };
    const choose = (position) => {
      close();
      pick(position);
      input.value = shown();
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
    // A field that already names a column offers all of them until something is typed.
    const open = () => {
      const result = dualquery.search(attributes, typed ? input.value : "", MOST_OPTIONS, fits);
      found = result.found;
      list.replaceChildren(...found.map((position, i) => {
        const {label, name} = attributes[position];
        const option = make("li", {id: `${list.id}-${i}`}, label,
          ...(label === name ? [] : [make("small", {className: "muted"}, ` ${name}`)]));
        option.setAttribute("role", "option");
        option.setAttribute("aria-selected", "false");
        option.addEventListener("mousedown", (event) => {
          event.preventDefault();
          choose(position);
        });
        return option;
      }));
      const more = result.count - found.length;
      note.textContent = found.length === 0 ? "no column has this in its name"
        : more > 0 ? `and ${more.toLocaleString("en")} more: type more of the name` : "";
      list.hidden = found.length === 0;
      input.setAttribute("aria-expanded", String(found.length > 0));
      mark(-1);
    };
    input.addEventListener("focus", () => { typed = false; input.select(); });
    input.addEventListener("input", () => { typed = true; open(); });
    input.addEventListener("click", open);
    input.addEventListener("blur", () => {
      close();
      note.textContent = "";
      if (typed && input.value.trim() === "") pick(null);
      input.value = shown();
    });
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
