// From a file, a page cannot read others: the search lists them without excerpts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
// Excerpts come from the article: no buttons, no heading that repeats the title of the page.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  Search.htmlToText = (text, anchor) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    page.querySelectorAll("h1, .headerlink, script, style, .run, summary").forEach((e) => e.remove());
    const found = (anchor && page.getElementById(anchor.slice(1))) || page.querySelector("article");
    return found ? found.textContent.replace(/\s+/g, " ") : "";
  };
});
