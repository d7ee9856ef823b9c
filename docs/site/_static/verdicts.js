// The map of verdicts: pointing at a tile, focusing or tapping it shows the claim below.
(() => {
  const panel = document.getElementById("verdict");
  const add = (name, text, parent = panel) => {
    const made = document.createElement(name);
    made.textContent = text;
    parent.append(made);
    return made;
  };
  const show = (tile) => {
    panel.replaceChildren();
    const [id, verdict] = tile.querySelector(".of").textContent.trim().split(", ");
    panel.dataset.verdict = verdict;
    const head = add("p", "");
    add("a", id, head).href = tile.href;
    head.append(" ");
    add("span", verdict, head).className = "verdict";
    add("p", `The paper says: ${tile.dataset.says}`);
    add("p", `What came out: ${tile.dataset.found}`);
    if (tile.dataset.figure) {
      const link = add("a", "", add("p", ""));
      link.href = tile.href.replace(/#.*/, `#figure-${tile.dataset.figure}`);
      const image = add("img", "", link);
      image.src = `_static/figures/${tile.dataset.figure}.png`;
      image.alt = `The figure of ${id}`;
    }
  };
  let touched = null;
  for (const tile of document.querySelectorAll("#verdicts .tile")) {
    tile.addEventListener("mouseenter", () => show(tile));
    tile.addEventListener("focus", () => show(tile));
    tile.addEventListener("click", (event) => {
      if (matchMedia("(hover: none)").matches && touched !== tile) event.preventDefault();
      touched = tile;
      show(tile);
    });
  }
})();
