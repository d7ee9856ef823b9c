// From a file, a page cannot read others: the search lists them without excerpts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
// Excerpts come from the article, without buttons and the page's title, around the words as typed:
// Sphinx looks for their stems, and "proxi" is nowhere.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  Search.htmlToText = (text, anchor) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    const left = "h1, .headerlink, script, noscript, style, .run, .files, summary";
    page.querySelectorAll(left).forEach((e) => e.remove());
    const found = (anchor && page.getElementById(anchor.slice(1))) || page.querySelector("article");
    return found ? found.textContent.replace(/\\[()]/g, "").replace(/\s+/g, " ").trim() : "";
  };
  Search.makeSearchSummary = (html, stems, anchor) => {
    const text = Search.htmlToText(html, anchor), lower = text.toLowerCase();
    const typed = new URLSearchParams(location.search).get("q")?.toLowerCase().match(/\S+/g) ?? [];
    const places = [...typed, ...stems].map((word) => lower.indexOf(word)).filter((at) => at >= 0);
    const start = places[0] > 100 ? text.indexOf(" ", places[0] - 100) + 1 : 0;
    const end = text.length > start + 240 ? text.lastIndexOf(" ", start + 240) : text.length;
    const summary = document.createElement("p");
    summary.className = "context";
    summary.textContent = (start ? "… " : "") + text.slice(start, end) + (end < text.length ? " …" : "");
    return text ? summary : null;
  };
});
