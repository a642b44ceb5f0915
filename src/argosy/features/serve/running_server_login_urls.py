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

from argosy.cli.cluster_target import TargetOptions, find_target, find_target_variable
from argosy.cli.running_sandbox_selection import find_instance_by_url, select_folder
from argosy.cli.sandbox_data_folder_and_lock import get_state_folder, write_private_text
from argosy.errors import UserError
from argosy.web.auth.login_codes import LoginCodes

STATE_FOLDER_NAME: Final = "page"  # below the state folder, and below a demo's folder
STATE_FILE_PREFIX: Final = "served-"  # followed by the process id and .json


class RunningWebServer(NamedTuple):
    url: str
    folder: Path
    started_at: float = 0.0
    cluster_name: str = ""  # display name of its cluster: the address comes last, in parentheses

    @property
    def port(self) -> int | None:
        return urlsplit(self.url).port


def find_login_url(data_dir: Path | None = None, port: int = 0) -> tuple[str, Path]:
    """Login URL of a running server, and its private folder. Raises UserError."""
    servers = (*_list_demo_servers(data_dir), *(list_running_servers() if data_dir is None else ()))
    matching_servers = [server for server in servers if not port or server.port == port]
    if data_dir is None and not port:
        matching_servers = _filter_by_target(matching_servers)
    if not matching_servers:
        where = f" on port {port}" if port else ""
        raise UserError(f"no web server is running here{where}; start one: argosy demo, or argosy serve")
    return create_login_url(matching_servers[0].url, matching_servers[0].folder), matching_servers[0].folder


def _filter_by_target(servers: list[RunningWebServer]) -> list[RunningWebServer]:
    """Keep the servers of the cluster that ARGOSY_CONTEXT or KUBECONFIG selects; all if neither is set.

    Raises UserError if servers run, but none for that cluster.
    """
    variable = find_target_variable()
    if not variable or not servers:
        return servers
    target = find_target(TargetOptions())
    urls = list_web_urls_of_cluster(target.connection.server)
    matching_servers = [server for server in servers if server.url in urls]
    if not matching_servers:
        advice = f"start one: argosy serve, or open the one of another cluster: argosy open --port {servers[0].port}"
        raise UserError(f"{variable} selects {target.display_name}, and no web server is running for it; {advice}")
    return matching_servers


def create_login_url(url: str, folder: Path) -> str:
    """URL with a one-time login code, valid for a minute; needs access to the folder."""
    return f"{url}/enter?code={LoginCodes(folder).create_code()}"


@contextlib.contextmanager
def write_state_file(folder: Path, url: str, cluster_name: str = "") -> Iterator[None]:
    """Write the state file of a server while the block runs."""
    file = folder / f"{STATE_FILE_PREFIX}{os.getpid()}.json"
    write_private_text(file, json.dumps({"url": url, "where": cluster_name}))
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def list_running_servers() -> list[RunningWebServer]:
    """Running `argosy serve` processes, newest first."""
    state_folder = get_state_folder() / STATE_FOLDER_NAME
    servers = []
    for file in state_folder.glob(f"{STATE_FILE_PREFIX}*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if _is_process_alive(int(file.stem.removeprefix(STATE_FILE_PREFIX))):
                state = json.loads(file.read_text())
                cluster_name = str(state.get("where", ""))
                servers.append(RunningWebServer(str(state["url"]), state_folder, file.stat().st_mtime, cluster_name))
    return sorted(servers, key=lambda server: server.started_at, reverse=True)


def list_web_urls_of_cluster(server: str) -> list[str]:
    """List the URLs of running web servers for the cluster whose API is at `server`."""
    run = find_instance_by_url(server)
    demos = [run[1].url] if run and run[1].url else []
    return [
        *demos,
        *(web_server.url for web_server in list_running_servers() if web_server.cluster_name.endswith(f"({server})")),
    ]


def _list_demo_servers(data_dir: Path | None) -> list[RunningWebServer]:
    run = select_folder(data_dir).find_running_instance()
    return [RunningWebServer(run.url, Path(run.data_dir) / STATE_FOLDER_NAME)] if run and run.url else []


def _is_process_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
