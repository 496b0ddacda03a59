// What is asked, as an address keeps it: `#q=share&of=smoker:1&in=age:5-7&by=region`.
"use strict";
Object.assign(dualquery, (() => {
  const FIGURES = ["share", "count", "mean", "median"];
  const PERCENTAGES = ["column", "row", "all"];

  // A question without a condition, about one column.
  const plainState = (of) => ({figure: "share", of, codes: [], where: [], by: null, as: "column",
                               groups: false, all: false, against: -1});

  const runs = (codes) => dualquery.runsOf(codes)
    .map(([low, high]) => (low === high ? `${low}` : `${low}-${high}`)).join();

  function encode(state, attributes) {
    const asked = new URLSearchParams();
    const named = (position, codes) => {
      const {name} = attributes[position];
      return codes.length ? `${name}:${runs(codes)}` : name.includes(":") ? `${name}:` : name;
    };
    asked.set("q", state.figure);
    asked.set("of", named(state.of, state.codes));
    for (const {attribute, codes, negated} of state.where) {
      asked.append(negated ? "not" : "in", named(attribute, codes));
    }
    if (state.by !== null) asked.set("by", named(state.by, []));
    if (state.as !== "column") asked.set("as", state.as);
    if (state.groups) asked.set("groups", "1");
    if (state.all) asked.set("all", "1");
    if (state.against >= 0) asked.set("against", String(state.against));
    return asked.toString();
  }

  // The question of an address; null for one that this page cannot ask.
  function decode(text, attributes) {
    const asked = new URLSearchParams(text.replace(/^#/, ""));
    const places = new Map(attributes.map((attribute, i) => [attribute.name, i]));
    const figure = asked.get("q");
    if (!FIGURES.includes(figure)) return null;
    const read = (entry) => {
      const colon = entry.lastIndexOf(":"), end = colon < 0 ? entry.length : colon;
      const attribute = places.get(entry.slice(0, end));
      if (attribute === undefined) return null;
      const codes = [];
      for (const run of entry.slice(end + 1).split(",").filter(Boolean)) {
        if (!/^\d+(-\d+)?$/.test(run)) return null;
        const [low, high] = run.split("-").map(Number);
        for (let c = low; c <= (high ?? low); c++) {
          if (c >= attributes[attribute].size) return null;
          codes.push(c);
        }
      }
      return {attribute, codes};
    };
    const of = read(asked.get("of") || ""), by = asked.has("by") ? read(asked.get("by")) : null;
    const where = [];
    for (const [key, entry] of asked) {
      if (key !== "in" && key !== "not") continue;
      const one = read(entry);
      if (!one || !one.codes.length || where.some((l) => l.attribute === one.attribute)) return null;
      where.push({...one, negated: key === "not"});
    }
    if (!of || (asked.has("by") && !by)) return null;
    if ((figure === "mean" || figure === "median") && !attributes[of.attribute].numbers) return null;
    const against = Number(asked.get("against") ?? -1);
    return {
      ...plainState(of.attribute), figure, codes: of.codes, where,
      by: by && by.attribute !== of.attribute ? by.attribute : null,
      as: PERCENTAGES.includes(asked.get("as")) ? asked.get("as") : "column",
      groups: asked.has("groups"), all: asked.has("all"),
      against: Number.isInteger(against) ? against : -1,
    };
  }

  return {plainState, encode, decode};
})());
