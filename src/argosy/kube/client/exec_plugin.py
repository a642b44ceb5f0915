"""Runs the exec credential plugin of a kubeconfig.

In: an ExecPlugin. Out: the status of its ExecCredential as a value.
Never: uses a shell; puts the plugin's stdout into a message (it contains the token); waits for orphaned children.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
import sys
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from argosy.errors import TransientError, UserError
from argosy.kube.client.connection_settings import Connection, ExecPlugin

PLUGIN_TIMEOUT_SECONDS = 60.0


class ExecCredential(NamedTuple):
    token: str = ""
    cert: bytes = b""
    key: bytes = b""
    expires: float | None = None  # Unix time; None: valid until the server answers 401


async def run_plugin(plugin: ExecPlugin, connection: Connection) -> ExecCredential:
    interactive = _is_interactive(plugin)
    env = {**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": _build_exec_info(plugin, connection, interactive)}
    process = await _start_uncancelled(plugin, env, interactive)
    stdout = stderr = None
    try:
        async with asyncio.timeout(PLUGIN_TIMEOUT_SECONDS):
            stdout, stderr = await process.communicate()
    except TimeoutError as error:
        raise TransientError(
            f"exec plugin {plugin.command}: no answer in {PLUGIN_TIMEOUT_SECONDS:g} s; run it by hand to see why"
        ) from error
    finally:
        if stdout is None:
            await _kill(process, interactive)
    if process.returncode:
        last_line = (stderr or b"").decode(errors="replace").strip().rpartition("\n")[2][:200]
        raise UserError(
            f"failed with exit code {process.returncode}" + (f": {last_line}" if last_line else ""),
            where=_format_location(plugin),
        )
    return read_credential(stdout, plugin)


def read_credential(text: bytes, plugin: ExecPlugin) -> ExecCredential:
    try:
        answer = orjson.loads(text)
        version, kind, status = answer.get("apiVersion"), answer.get("kind"), answer.get("status") or {}
    except (orjson.JSONDecodeError, AttributeError) as error:
        raise UserError("did not print an ExecCredential in JSON", where=_format_location(plugin)) from error
    if kind != "ExecCredential" or version != plugin.api_version:
        raise UserError(
            f"printed {kind} of {version}, expected ExecCredential of {plugin.api_version}",
            where=_format_location(plugin),
        )
    token, cert, key = (status.get(name) or "" for name in ("token", "clientCertificateData", "clientKeyData"))
    if not token and not (cert and key):
        raise UserError("printed neither a token nor a certificate with its key", where=_format_location(plugin))
    return ExecCredential(token, cert.encode(), key.encode(), _parse_expiry(status.get("expirationTimestamp"), plugin))


def _is_interactive(plugin: ExecPlugin) -> bool:
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not terminal:
        raise UserError(
            "requires a terminal, but stdin is not one (interactiveMode: Always)", where=_format_location(plugin)
        )
    return terminal and plugin.interactive_mode != "Never"


def _build_exec_info(plugin: ExecPlugin, connection: Connection, interactive: bool) -> str:
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        cluster = {
            "server": connection.server,
            "tls-server-name": connection.tls_server_name,
            "insecure-skip-tls-verify": connection.insecure,
            "certificate-authority-data": base64.b64encode(_load_ca(connection)).decode(),
            "proxy-url": connection.proxy_url,
            "disable-compression": not connection.compressed,
            "config": plugin.cluster_config,
        }
        spec["cluster"] = {name: value for name, value in cluster.items() if value}
    return orjson.dumps({"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}).decode()


def _load_ca(connection: Connection) -> bytes:
    if connection.ca_data or not connection.ca_file:
        return connection.ca_data
    with open(connection.ca_file, "rb") as file:
        return file.read()


async def _start_uncancelled(plugin: ExecPlugin, env: dict[str, str], interactive: bool) -> asyncio.subprocess.Process:
    """Start the plugin; on cancellation, wait for the start and then kill it, so that its children end too."""
    starting = asyncio.ensure_future(_start(plugin, env, interactive))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(UserError):
            await _kill(await starting, interactive)
        raise


async def _start(plugin: ExecPlugin, env: dict[str, str], interactive: bool) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=env,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # A user at a terminal must see the plugin's prompts.
            stderr=None if interactive else asyncio.subprocess.PIPE,
            # A session lets us kill its children with it; an interactive plugin would lose the terminal.
            start_new_session=not interactive,
        )
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
        raise UserError(
            ("the program is not installed, or not in PATH" if missing else f"cannot be run: {error.strerror}") + hint,
            where=_format_location(plugin),
        ) from error


async def _kill(process: asyncio.subprocess.Process, interactive: bool) -> None:
    """Kill the plugin and its children: a script may wait for another program that also has the output open."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if interactive:
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    # A detached child may hold the output open; asyncio reports the end of the process only after the pipes are closed.
    for descriptor in (1, 2):
        if pipe := process._transport.get_pipe_transport(descriptor):  # type: ignore[attr-defined]
            pipe.close()
    await process.wait()


def _parse_expiry(stamp: str | None, plugin: ExecPlugin) -> float | None:
    if not stamp:
        return None
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError as error:
        raise UserError("printed an invalid expirationTimestamp", where=_format_location(plugin)) from error


def _format_location(plugin: ExecPlugin) -> str:
    return f"exec plugin {plugin.command}"
