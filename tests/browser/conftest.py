"""Browser fixtures: one Chromium for consecutive test files of this folder, one browser context per test.

In: Debian's Chromium and axe-core, if installed. Out: pages whose console must stay silent, and `axe`. Never: a test
that passes because the browser is missing: it is skipped with a reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import chromium_here
from support.deadlines import HANG_SECONDS
from support.folder_resource import FolderResource
from support.gallery_server import Gallery

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

HERE = Path(__file__).parent
AXE = HERE.parents[1] / ".venv" / "axe" / "axe.min.js"
CALM = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage", "--disable-sync",
    "--no-first-run", "--disable-component-update", "--disable-extensions",
)  # fmt: skip
GRAVE = ("serious", "critical")
Axe = Callable[..., None]


@contextlib.contextmanager
def launch_chromium() -> Iterator[Any]:
    """Launch Chromium. Its event loop occupies this thread, so tests with their own loop cannot run meanwhile."""
    executable = chromium_here()
    if executable is None:
        pytest.skip("no Chromium here; apt-get install chromium")
    sync_api.expect.set_options(timeout=HANG_SECONDS * 1000)
    with (
        sync_api.sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=executable, args=list(CALM), timeout=HANG_SECONDS * 1000) as browser,
    ):
        yield browser


CHROMIUM = FolderResource(HERE, launch_chromium)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CHROMIUM)


@pytest.fixture(scope="module")
def chromium() -> Any:
    return CHROMIUM.get()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Factory of pages. Console errors, console warnings and failed requests fail the test at its end."""
    contexts: list[Any] = []
    noise: list[str] = []

    def make(**options: Any) -> Any:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        context.set_default_timeout(HANG_SECONDS * 1000)
        contexts.append(context)
        page = context.new_page()
        page.expected = []  # parts of console messages that a test expects
        page.on("console", lambda message: message.type in ("error", "warning") and _note(page, noise, message.text))
        page.on("pageerror", lambda error: _note(page, noise, f"error: {error}"))
        return page

    yield make
    for context in contexts:
        context.close()
    assert noise == []


def _note(page: Any, noise: list[str], text: str) -> None:
    if not any(part in text for part in page.expected):
        noise.append(f"{page.url}: {text}")


@pytest.fixture
def tab(open_page: Callable[..., Any]) -> Any:
    """One page with the default wide viewport."""
    return open_page()


@pytest.fixture(scope="session")
def axe() -> Axe:
    """`axe(page)` asserts that axe-core finds no serious or critical violation (WCAG 2.2 AA and best practices)."""
    if not AXE.is_file():
        pytest.skip("no axe-core here; make install fetches it where there is npm")
    script = AXE.read_text()

    def check(page: Any, description: str = "", only: list[str] | None = None) -> None:
        if not page.evaluate("() => Boolean(window.axe)"):
            page.evaluate(script)  # injected by the test: the page's content security policy stays in force
        options: dict[str, Any] = {
            "resultTypes": ["violations"],
            "iframes": False,
        }  # notebook outputs are iframes without an origin
        options |= {"runOnly": only} if only else {"rules": {"target-size": {"enabled": True}}}
        report = page.evaluate("(asked) => axe.run(document, asked)", options)
        problems = [
            f"{violation['id']} ({violation['impact']}): {node['target']} "
            f"{node['failureSummary'].splitlines()[-1].strip()}"
            for violation in report["violations"]
            if violation["impact"] in GRAVE
            for node in violation["nodes"][:3]
        ]
        assert problems == [], f"{description or page.url}\n" + "\n".join(problems)

    return check


@pytest.fixture(scope="module")
def gallery_site() -> Iterator[Gallery]:
    site = Gallery()
    yield site
    site.close()
