// Sorting, picking and pointing. The page is whole without this script.
"use strict";
(() => {
  const rows = [...document.querySelectorAll("tr[data-system]")];
  const marks = [...document.querySelectorAll("g[data-system]")];
  document.documentElement.classList.add("live");

  const make = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  // Tables: a head's button sorts up, then down, then as it was.
  const NEXT = { ascending: "descending", descending: "none", none: "ascending" };
  const first = new Map(rows.map((row, place) => [row, place]));

  function sort(table, heads, column) {
    const order = NEXT[heads[column].getAttribute("aria-sort")];
    for (const head of heads) head.setAttribute("aria-sort", "none");
    heads[column].setAttribute("aria-sort", order);
    const value = row => row.cells[column].dataset.value;
    const word = row => row.cells[column].textContent.trim();
    const mine = [...table.querySelectorAll("tr[data-system]")];
    const numbers = mine.some(row => value(row) !== undefined);
    const sign = order === "descending" ? -1 : 1;
    const compare = (a, b) => {
      if (order === "none") return 0;
      if (!numbers) return sign * word(a).localeCompare(word(b), "en", { numeric: true });
      const known = [a, b].map(row => value(row) !== undefined);
      // What nobody measured comes last, whichever way.
      if (!known[0] || !known[1]) return known[1] - known[0];
      return sign * (value(a) - value(b));
    };
    for (const body of table.tBodies) {
      const own = [...body.rows].filter(row => first.has(row));
      own.sort((a, b) => compare(a, b) || first.get(a) - first.get(b));
      const last = body.querySelector("tr.order");
      for (const row of own) body.insertBefore(row, last);
    }
  }

  for (const table of document.querySelectorAll("table.sorts")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      button.addEventListener("click", () => sort(table, heads, column));
      head.setAttribute("aria-sort", "none");
      head.append(button);
    });
  }

  // What to see: none chosen is all.
  const chosen = { system: new Set(), cipher: new Set() };
  const shown = make("p", { id: "shown" });
  shown.setAttribute("role", "status");

  const fits = element => Object.entries(chosen).every(
    ([by, names]) => names.size === 0 || names.has(element.dataset[by]));

  function pick() {
    let count = 0;
    for (const row of rows) {
      row.hidden = !fits(row);
      count += !row.hidden;
    }
    for (const body of new Set(rows.map(row => row.parentNode))) {
      body.hidden = [...body.rows].every(row => row.hidden || !first.has(row));
    }
    for (const mark of marks) mark.classList.toggle("off", !fits(mark));
    const all = Object.values(chosen).every(names => names.size === 0);
    const names = Object.values(chosen).flatMap(names => [...names]).join(", ");
    shown.textContent = all ? "" : `Only ${names}: ${count} of ${rows.length} rows`;
  }

  function choices(by, legend) {
    const names = [...new Set(rows.map(row => row.dataset[by]))];
    if (names.length < 2) return [];
    const boxes = names.map(name => {
      const box = make("input", { type: "checkbox", value: name });
      box.addEventListener("change", () => {
        chosen[by][box.checked ? "add" : "delete"](name);
        pick();
      });
      return make("label", {}, box, ` ${name}`);
    });
    return [make("fieldset", {}, make("legend", {}, legend), ...boxes)];
  }

  const place = document.getElementById("pick");
  const sets = [...choices("system", "Only these systems"), ...choices("cipher", "Only these ciphers")];
  if (place && sets.length > 0) {
    const all = make("button", { type: "reset" }, "Show all");
    const form = make("form", { autocomplete: "off" }, ...sets, all);
    form.setAttribute("aria-label", "Choose what to see");
    form.addEventListener("reset", () => {
      for (const names of Object.values(chosen)) names.clear();
      pick();
    });
    place.append(form, shown);
  }

  // Pictures: values of the row that is pointed at, or chosen by arrow keys.
  const tip = make("div", { id: "tip", hidden: true });
  tip.setAttribute("role", "status");
  document.body.append(tip);
  let pointed = null;
  let byKey = false;

  function point(mark, x, y) {
    if (pointed && pointed !== mark) {
      pointed.classList.remove("on");
      pointed.ownerSVGElement.classList.remove("pointing");
    }
    pointed = mark;
    tip.hidden = !mark;
    if (!mark) return;
    const title = mark.querySelector("title");
    if (title) {
      // Else the browser would show it once more.
      mark.setAttribute("aria-label", title.textContent);
      title.remove();
    }
    mark.classList.add("on");
    mark.ownerSVGElement.classList.add("pointing");
    const text = mark.getAttribute("aria-label");
    if (tip.textContent !== text) tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(x + 12, innerWidth - width - 8);
    const below = y + 18 + height < innerHeight;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${below ? y + 18 : Math.max(8, y - height - 10)}px`;
  }

  const under = event => event.target.closest?.("svg g[role=img]:not(.off)") ?? null;
  const follow = event => {
    byKey = false;
    point(under(event), event.clientX, event.clientY);
  };
  // A mouse that is nudged takes nothing from the keyboard.
  document.addEventListener("pointermove", event => {
    if (!byKey || under(event)) follow(event);
  });
  document.addEventListener("click", follow);
  document.addEventListener("scroll", () => byKey || point(null), { passive: true });

  const STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };
  for (const svg of document.querySelectorAll("svg")) {
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("blur", () => {
      byKey = false;
      point(null);
    });
    svg.addEventListener("keydown", event => {
      if (event.key === "Escape") return point(null);
      const step = STEPS[event.key];
      const own = [...svg.querySelectorAll("g[role=img]:not(.off)")];
      if (!step || own.length === 0) return;
      event.preventDefault();
      const at = own.indexOf(pointed);
      const next = at < 0 ? (step > 0 ? 0 : own.length - 1) : (at + step + own.length) % own.length;
      byKey = true;
      own[next].scrollIntoView({ block: "nearest" });
      const box = own[next].getBoundingClientRect();
      point(own[next], box.left, box.bottom - 10);
    });
  }
})();
