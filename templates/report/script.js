"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const input = document.getElementById("filter"), found = document.getElementById("found");

  // Marks: elements whose data-m has the token of the element that is pointed at, focused or pressed.
  let pressed = null;
  const tokenOf = (element) => element.closest("[data-m]")?.dataset.m.split(" ")[0];
  const mark = (token) => {
    for (const each of all(".on")) each.classList.remove("on");
    if (token) for (const each of all(`[data-m~="${token}"]`)) each.classList.add("on");
  };
  const press = (button) => {
    pressed = button && tokenOf(button) !== pressed ? tokenOf(button) : null;
    for (const each of all("button.leaf")) each.setAttribute("aria-pressed", String(tokenOf(each) === pressed));
    mark(pressed);
  };
  for (const [begin, end] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
    document.addEventListener(begin, ({ target }) => { const token = tokenOf(target); if (token) mark(token); });
    document.addEventListener(end, ({ target }) => { if (tokenOf(target)) mark(pressed); });
  }
  document.addEventListener("click", ({ target }) => { const button = target.closest("button.leaf"); if (button) press(button); });

  // The filter hides rows without the text; a flow with lines keeps its places, and only dims them.
  const opened = new Set();
  const filter = () => {
    const text = input.value.trim().toLowerCase();
    let count = 0;
    for (const each of all("[data-f], tbody tr, dl div")) {
      const fits = each.textContent.toLowerCase().includes(text);
      if (each.closest(".flow")) each.classList.toggle("dim", !fits);
      else each.hidden = !fits;
      if (!fits || !text) continue;
      count += 1;
      const folded = each.closest("details");
      if (folded && !folded.open) { folded.open = true; opened.add(folded); }
    }
    if (!text) { for (const each of opened) each.open = false; opened.clear(); }
    found.value = text ? `${count} found` : "";
  };
  input?.addEventListener("input", filter);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== input && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input?.focus();
    } else if (event.key === "Escape") {
      if (input) { input.value = ""; filter(); input.blur(); }
      press(null);
    }
  });

  // Paper unfolds nothing by itself.
  let closed = [];
  addEventListener("beforeprint", () => { closed = all("details:not([open])"); for (const each of closed) each.open = true; });
  addEventListener("afterprint", () => { for (const each of closed) each.open = false; });
})();
