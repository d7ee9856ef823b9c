"""A browser that reaches this machine only, and the site on a local server."""

import functools
import http.server
import os
import shutil
import sys
import threading

import pytest
from playwright.sync_api import sync_playwright

from workflow import BUILD

SITE = BUILD / "site"
SCREENSHOTS = BUILD / "screenshots"
STILL = "*, ::before, ::after { transition: none !important; animation: none !important }"
QUIET = [  # no request of its own
    *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
    *("--disable-sync", "--no-first-run"),
]


def launch(playwright):
    """Start the Chromium of $CHROMIUM or on the path; playwright's own is never fetched."""
    names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    path = next(filter(None, (shutil.which(name) for name in names if name)), None)
    if path is None:
        sys.exit("Chromium is needed (Debian: apt-get install chromium), or CHROMIUM=/path/to/it.")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=path, args=QUIET + root)


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server():
    """Address of the site."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


class Watch:
    """What a page asked for outside this machine, and what it complained about."""

    def __init__(self, page):
        self.outside, self.errors = [], []
        page.on("console", lambda m: m.type == "error" and self.errors.append(m.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("requestfailed", lambda request: self.errors.append(request.url))
        page.on("response", lambda r: r.status >= 400 and self.errors.append(r.url))
        page.route("**/*", self.local_only)

    def local_only(self, route):
        local = ("file:", "data:", "blob:", "http://127.0.0.1:", "ws://127.0.0.1:")
        if route.request.url.startswith(local):
            route.continue_()
        else:
            self.outside.append(route.request.url)
            route.abort()


@pytest.fixture
def open_page(browser):
    """A function that opens an address and watches; what was watched must be clean at the end."""
    pages = []

    def opened(address, width=1280, height=900, scheme="light"):
        viewport = {"width": width, "height": height}
        page = browser.new_page(viewport=viewport, color_scheme=scheme)
        watch = Watch(page)
        pages.append((page, watch))
        page.goto(address)  # until everything is loaded
        page.add_style_tag(content=STILL)  # nothing slides or fades
        page.evaluate("() => window.MathJax?.startup?.promise.then(() => true) ?? true")
        return page

    yield opened
    for page, watch in pages:
        page.close()
        assert watch.outside == []
        assert watch.errors == []


@pytest.fixture(scope="session")
def screenshot():
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return lambda page, name: page.screenshot(path=SCREENSHOTS / f"{name}.png")
