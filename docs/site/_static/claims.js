// Filters of the table of claims. Without scripts, the whole table is there.
(() => {
  const rows = [...document.querySelectorAll("#claims-table tbody tr")];
  const [section, verdict, words, count] = ["section", "verdict", "words", "count"].map(
    (name) => document.getElementById(`filter-${name}`),
  );
  for (const [select, key] of [[section, "section"], [verdict, "verdict"]]) {
    for (const value of new Set(rows.map((row) => row.dataset[key]))) {
      select.add(new Option(value, value));
    }
  }
  const update = () => {
    const wanted = words.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !(
        (!section.value || row.dataset.section === section.value) &&
        (!verdict.value || row.dataset.verdict === verdict.value) &&
        row.textContent.toLowerCase().includes(wanted)
      );
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length}`;
  };
  for (const control of [section, verdict, words]) control.addEventListener("input", update);
  document.getElementById("claims-filter").hidden = false;
  update();
})();
