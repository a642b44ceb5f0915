"""The `goreman` command of Argo CD's end-to-end tests, which list, stop and start components with it.

In: components. Out: a folder for PATH whose `goreman run status|start|stop` acts on them. Never: runs a Procfile.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socketserver
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol

# The tests write the variables for the next start of the controller to this file.
VARIABLES_FILE: Final = Path("/tmp/argocd-e2e-env")
_COMMAND: Final = """\
#!{python} -S
import json, socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect({socket!r})
client.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
code, _, text = client.makefile().read().partition("\\n")
print(text, end="")
sys.exit(int(code))
"""


class Components(Protocol):
    """The components of an installation under test, by their names in Argo CD's Procfile."""

    def list_running(self) -> Mapping[str, bool]: ...

    def start(self, name: str, variables: Mapping[str, str]) -> None: ...

    def stop(self, name: str) -> None: ...


def answer_command(components: Components, words: list[str]) -> tuple[int, str]:
    """Return exit code and output of `goreman WORDS`."""
    match words:
        case ["run", "status"]:
            running = components.list_running()
            return 0, "".join(f"{'*' if running[name] else ' '}{name}\n" for name in running)
        case ["run", "start" | "stop" as action, name] if name in components.list_running():
            if components.list_running()[name] == (action == "start"):
                return 0, ""
            if action == "start":
                components.start(name, read_variables())
            else:
                components.stop(name)
            return 0, ""
    return 1, f"goreman: unknown command or component: {shlex.join(words)}\n"


def read_variables() -> dict[str, str]:
    """Return what the lines `export NAME=VALUE` of the variables file set."""
    if not VARIABLES_FILE.exists():
        return {}
    lines = [line.removeprefix("export ") for line in VARIABLES_FILE.read_text().splitlines()]
    return {name: value for name, _, value in (line.partition("=") for line in lines) if name}


@contextlib.contextmanager
def provide_goreman(components: Components, folder: Path) -> Iterator[Path]:
    """Answer `goreman` commands for the components; yield the folder with the command."""
    folder.mkdir(parents=True)
    socket_file = folder / "socket"

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            code, text = answer_command(components, json.loads(self.rfile.readline()))
            self.wfile.write(f"{code}\n{text}".encode())

    command = folder / "goreman"
    command.write_text(_COMMAND.format(python=sys.executable, socket=str(socket_file)))
    os.chmod(command, 0o755)
    with socketserver.UnixStreamServer(str(socket_file), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield folder
        finally:
            server.shutdown()
            VARIABLES_FILE.unlink(missing_ok=True)
