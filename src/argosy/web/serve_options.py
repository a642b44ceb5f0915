"""Options with which a web server serves.

In: values that the start-up code chooses. Out: ServeOptions. Never: contains a secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class ServeOptions:
    origin: str = ""  # such as https://argosy.example.com; empty: derived from the Host header
    hosts: tuple[str, ...] = LOOPBACK_HOSTS  # without a port
    is_loopback: bool = True
    is_tls: bool = False
    is_simulated: bool = False
    repository: Path | None = None  # delivery repository, for promotions
    plugin_sockets: str = ""  # folder with the sockets of plug-ins in sidecars; empty: none
    notebook_runs_folder: Path | None = None  # data folder of a local cluster, which stores its notebook runs
    version: str = ""
    title: str = "argosy"
    port: int = 0  # part of the cookie name, so that two servers on one machine do not share a cookie
