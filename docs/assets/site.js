// What scrolls sideways can be scrolled with the keys, too: it has to take the focus for that.
(() => {
  const note = (element) => {
    if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
    else element.removeAttribute("tabindex");
  };
  // The theme does so for code, but only where there is a mouse, and takes it back elsewhere: a
  // frame later it is done.
  const seen = new ResizeObserver((changes) =>
    requestAnimationFrame(() => changes.forEach(({ target }) => note(target))),
  );
  const selector = "pre > code, .md-typeset__table > table, .md-typeset__scrollwrap, pre";
  addEventListener("load", () =>
    document.querySelectorAll(selector).forEach((element) => seen.observe(element)),
  );
})();

// Over a figure of the live plan the wheel zooms. Somebody who scrolls past it means the page: a
// cover gives the wheel to the page, until a click asks for the plan and as long as the pointer
// stays.
(() => {
  const plan = document.querySelector(".live-plan");
  if (!plan) return;
  const cover = document.createElement("button");
  cover.type = "button";
  cover.append(Object.assign(document.createElement("span"), { textContent: "Look around" }));
  cover.addEventListener("click", () => {
    cover.hidden = true;
    plan.querySelector("iframe").focus();
  });
  plan.addEventListener("pointerleave", () => (cover.hidden = false));
  plan.append(cover);
})();
