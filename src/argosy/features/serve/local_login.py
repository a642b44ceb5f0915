"""Running web servers of this user, and one-time login URLs for them.

In: state files of running servers. Out: a URL with a one-time code. Never: a server of another user, or one that has
stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from argosy.cli.data_folder import state_home, write_text
from argosy.cli.running_instances import chosen_folder, find_run
from argosy.cli.target import TargetOptions, find_target, target_variable
from argosy.errors import UserError
from argosy.web.auth.login_codes import Codes

FOLDER: Final = "page"  # below the state folder, and below a demo's folder
RUNNING: Final = "served-"  # followed by the process id and .json


class Running(NamedTuple):
    url: str
    folder: Path
    began: float = 0.0
    where: str = ""  # display name of its cluster: the address comes last, in parentheses

    @property
    def port(self) -> int | None:
        return urlsplit(self.url).port


def entrance_here(data_dir: Path | None = None, port: int = 0) -> tuple[str, Path]:
    """Login URL of a running server, and its private folder. Raises UserError."""
    running = (*_demos(data_dir), *(served() if data_dir is None else ()))
    found = [each for each in running if not port or each.port == port]
    if data_dir is None and not port:
        found = _pages_of_target(found)
    if not found:
        where = f" on port {port}" if port else ""
        raise UserError(f"no web server is running here{where}; start one: argosy demo, or argosy serve")
    return entrance(found[0].url, found[0].folder), found[0].folder


def _pages_of_target(pages: list[Running]) -> list[Running]:
    """Keep the servers of the cluster that ARGOSY_CONTEXT or KUBECONFIG selects; all if neither is set.

    Raises UserError if servers run, but none for that cluster.
    """
    variable = target_variable()
    if not variable or not pages:
        return pages
    target = find_target(TargetOptions())
    urls = pages_of(target.connection.server)
    found = [page for page in pages if page.url in urls]
    if not found:
        advice = f"start one: argosy serve, or open the one of another cluster: argosy open --port {pages[0].port}"
        raise UserError(f"{variable} selects {target.where}, and no web server is running for it; {advice}")
    return found


def entrance(url: str, folder: Path) -> str:
    """URL with a one-time login code, valid for a minute; needs access to the folder."""
    return f"{url}/enter?code={Codes(folder).mint()}"


@contextlib.contextmanager
def told(folder: Path, url: str, where: str = "") -> Iterator[None]:
    """Write the state file of a server while the block runs."""
    file = folder / f"{RUNNING}{os.getpid()}.json"
    write_text(file, json.dumps({"url": url, "where": where}))
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def served() -> list[Running]:
    """Running `argosy serve` processes, newest first."""
    place = state_home() / FOLDER
    found = []
    for file in place.glob(f"{RUNNING}*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if _lives(int(file.stem.removeprefix(RUNNING))):
                page = json.loads(file.read_text())
                where = str(page.get("where", ""))
                found.append(Running(str(page["url"]), place, file.stat().st_mtime, where))
    return sorted(found, key=lambda each: each.began, reverse=True)


def pages_of(server: str) -> list[str]:
    """List the URLs of running web servers for the cluster whose API is at `server`."""
    run = find_run(server)
    demos = [run[1].url] if run and run[1].url else []
    return [*demos, *(page.url for page in served() if page.where.endswith(f"({server})"))]


def _demos(data_dir: Path | None) -> list[Running]:
    run = chosen_folder(data_dir).running()
    return [Running(run.url, Path(run.data_dir) / FOLDER)] if run and run.url else []


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
