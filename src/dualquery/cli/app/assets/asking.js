"use strict";
// How the page asks the command behind it. The token is in this window alone.
const dualquery = {};

(() => {
  const KEPT = "dualquery-token";

  dualquery.el = (tag, told = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(told)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (name in made && name !== "list") made[name] = value;
      else if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== null && child !== ""));
    return made;
  };

  async function post(address, told, token) {
    const headers = { "Content-Type": "application/json" };
    if (token) headers.Authorization = `Bearer ${token}`;
    let answer;
    try {
      answer = await fetch(address, { method: "POST", headers, body: JSON.stringify(told) });
    } catch {
      throw new Error("the app was closed; start it again with: dualquery app");
    }
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.error);
    return said;
  }

  dualquery.enter = async () => {
    const key = location.hash.slice(1);
    if (key.length < 40) return;
    history.replaceState(null, "", "/");
    const said = await post("/enter", { key }, "");
    sessionStorage.setItem(KEPT, said.token);
  };

  dualquery.ask = (step, told = {}) =>
    post(`/do/${step}`, told, sessionStorage.getItem(KEPT));

  // The newest answer to a question that is asked again and again; null for the others.
  dualquery.newest = () => {
    let last = 0;
    return async (step, told) => {
      const mine = (last += 1);
      const said = await dualquery.ask(step, told);
      return mine === last ? said : null;
    };
  };
})();
