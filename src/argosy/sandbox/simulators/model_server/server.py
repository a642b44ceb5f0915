"""The model server process: serves HTTP on an inherited socket for the models registered on standard input.

In: the number of a listening socket; on standard input one JSON line per model to serve or to forget. Out: responses;
on standard output log lines, each prefixed with the host of its model.
Never: opens a connection; continues after standard input ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from argosy.sandbox.simulators.model_server.inference_protocols import MODELS_PATH, answer_request, is_openai_path
from argosy.sandbox.simulators.model_server.model_file import ModelLoadError, load_model
from argosy.sandbox.simulators.model_server.request_reply_types import (
    SIMULATED_NOTE,
    ModelEntry,
    ModelReply,
    ModelRequest,
    RequestError,
)
from argosy.sandbox.simulators.model_server.stub_model import StubModel

MAX_REQUEST_BYTES = 8 << 20  # maximum size of a request
MAX_CONCURRENT_REQUESTS = 16
READ_TIMEOUT_SECONDS = 10.0  # seconds without receiving a byte of a request
TIMESTAMP_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
RESPONSE_TIMEOUT_SECONDS = 30.0  # seconds for a model to respond
LOAD_TIMEOUT_SECONDS = 300.0  # seconds for a model to load
LOAD_WAIT_SECONDS = 5.0  # seconds that a request waits for a model that is loading
OPENAI_PATH_PREFIX = "/openai"  # kserve: path prefix of its runtime for text models
HOST_SUFFIX = ".localhost"
PROBE_USER_AGENT = "argosy-probe"  # frequent readiness probes are not logged


class ModelRegistry:
    """The models by host and by name."""

    def __init__(self) -> None:
        self._entries: dict[str, ModelEntry] = {}
        self._has_models = threading.Event()

    def register_from_line(self, line: str) -> None:
        self._register_or_forget(json.loads(line))
        self._has_models.set()

    def _register_or_forget(self, registration: dict[str, Any]) -> None:
        if "forget" in registration:
            self._entries.pop(registration["forget"], None)
            return
        current = self._entries.get(registration["host"])
        if current is not None and current.registration == registration:
            return
        entry = ModelEntry(
            registration["host"], registration["name"], source=registration.get("source", ""), registration=registration
        )
        if registration.get("folder"):
            self._entries[entry.host] = entry
            threading.Thread(target=_load_entry, args=(entry, registration["folder"]), daemon=True).start()
        else:
            entry.model, entry.state = StubModel(entry.name), "loaded"
            entry.load_finished.set()
            self._entries[entry.host] = entry
            log_line(entry.host, f"a stub answers for {entry.name}; {entry.source} is not loaded ({SIMULATED_NOTE})")

    def find(self, host: str, path: str) -> ModelEntry:
        """Find a model by the requested host, or by name if only one model has it. Raises RequestError."""
        # a restarted process receives its models a moment later
        self._has_models.wait(READ_TIMEOUT_SECONDS)
        entry_of_host = self._entries.get(_read_host_label(host))
        if entry_of_host is not None:
            return entry_of_host
        entries = list(self._entries.values())
        # the address of one model never serves another
        if host.rpartition(":")[0].lower().endswith(HOST_SUFFIX):
            raise RequestError(503, f"no model runs for host {host[:200]!r}; see why: argosy model list")
        named_entries = [entry for entry in entries if f"/models/{entry.name}" in path]
        for candidates in (entries, named_entries):
            if len(candidates) == 1:
                return candidates[0]
        hosts = ", ".join(sorted(f"{entry.host}{HOST_SUFFIX}" for entry in entries)[:20]) or "none"
        raise RequestError(404, f"no model for host {host[:200]!r}; hosts of this server: {hosts}")


def _read_host_label(host: str) -> str:
    """Return the first label of the host.

    The host of a Route begins with the same label; for the host of a Service the label is built from name and
    namespace.
    """
    first_label, _, remainder = (host.rpartition(":")[0] if ":" in host else host).lower().partition(".")
    namespace, _, domain = remainder.partition(".")
    return f"{first_label.removesuffix('-predictor')}-{namespace}" if f"{domain}.".startswith("svc.") else first_label


def log_line(host: str, text: str) -> None:
    """Print a log line for the model of this host; output of the model itself has no host prefix."""
    lines = text.splitlines() or [""]
    print("\n".join(f"{host} {time.strftime(TIMESTAMP_FORMAT, time.gmtime())} {line}" for line in lines), flush=True)


def _load_entry(entry: ModelEntry, folder: str) -> None:
    started_at = time.monotonic()
    timer = threading.Timer(LOAD_TIMEOUT_SECONDS, _exit_if_loading, (entry,))
    timer.daemon = True
    timer.start()
    log_line(entry.host, f"loading {entry.name} from {entry.source} ({SIMULATED_NOTE})")
    try:
        entry.model = load_model(folder)
    except ModelLoadError as error:
        if error.__cause__ is not None:
            log_line(entry.host, "".join(traceback.format_exception(error.__cause__)))
        _mark_failed(entry, str(error))
    except BaseException as error:  # for example MemoryError: user code ran
        _mark_failed(entry, f"{type(error).__name__}: {str(error)[:300]}")
    else:
        entry.state = "loaded"
        entry.load_finished.set()
        endpoints = f"{MODELS_PATH}/{entry.name}:predict or /v2/models/{entry.name}/infer"
        log_line(entry.host, f"loaded in {time.monotonic() - started_at:.1f} s; query {endpoints}")


def _exit_if_loading(entry: ModelEntry) -> None:
    """Exit, because a loading thread cannot be stopped; the supervisor starts a new process."""
    if entry.state == "loading":
        log_line(entry.host, f"{entry.name} did not load within {LOAD_TIMEOUT_SECONDS:.0f} s")
        os._exit(4)


def _mark_failed(entry: ModelEntry, reason: str) -> None:
    entry.state, entry.message = "failed", reason
    entry.load_finished.set()
    log_line(entry.host, f"{entry.name} cannot be served: {reason}")


class ModelRequestHandler(BaseHTTPRequestHandler):
    server_version, sys_version = f"argosy-models ({SIMULATED_NOTE})", ""
    timeout = READ_TIMEOUT_SECONDS
    registry: ModelRegistry

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        path, started_at, host = self.path.partition("?")[0].removeprefix(OPENAI_PATH_PREFIX), time.monotonic(), ""
        try:
            request = ModelRequest(self.command, path, self._read_body())
            entry = self.registry.find(self.headers.get("Host") or "", path)
            host = entry.host
            # kserve: a Pod that is not ready gets no requests; an early request waits
            if request.method == "POST":
                entry.load_finished.wait(LOAD_WAIT_SECONDS)
            reply = _run_with_timeout(lambda: answer_request(request, entry))
        except RequestError as request_error:
            reply = request_error.to_reply(is_openai=is_openai_path(path))
        if reply.events is not None:
            self._stream(reply)
        else:
            self._send(reply)
        self._log_request(host, path, reply, started_at)
        if reply.status == 504:
            os._exit(4)  # the thread cannot be stopped; the supervisor starts a new process

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding"):
            raise RequestError(411, "chunked requests are not supported; send a Content-Length")
        text = self.headers.get("Content-Length") or "0"
        length = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
        if not 0 <= length <= MAX_REQUEST_BYTES:
            raise RequestError(413, f"the request is larger than {MAX_REQUEST_BYTES >> 20} MiB")
        return self.rfile.read(length)

    def _send(self, reply: ModelReply) -> None:
        try:
            data = json.dumps(reply.document, default=str).encode() + b"\n"
        except (ValueError, RecursionError) as error:
            error_reply = RequestError(500, f"the model's result is not JSON: {error}").to_reply(is_openai=False)
            reply, data = error_reply, json.dumps(error_reply.document).encode() + b"\n"
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, reply: ModelReply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in reply.events or ():
            self.wfile.write(f"data: {event}\n\n".encode())

    def _log_request(self, host: str, path: str, reply: ModelReply, started_at: float) -> None:
        if host and self.headers.get("User-Agent") != PROBE_USER_AGENT:
            error = reply.document.get("error") if reply.status >= 400 else None
            message = error.get("message") if isinstance(error, dict) else error
            duration = f"{(time.monotonic() - started_at) * 1000:.0f} ms"
            log_line(host, f"{self.command} {path!a} {reply.status} {duration}{f': {message}' if message else ''}")

    def log_message(self, format: str, *args: Any) -> None:
        """Do nothing: `_log_request` logs each request once."""


def _run_with_timeout(work: Any) -> ModelReply:
    """Run the work in a thread with a timeout, because a model's own code may never end."""
    outcomes: list[ModelReply | BaseException] = []

    def run() -> None:
        try:
            outcomes.append(work())
        except BaseException as error:
            outcomes.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(RESPONSE_TIMEOUT_SECONDS)
    if not outcomes:
        raise RequestError(504, f"the model did not respond within {RESPONSE_TIMEOUT_SECONDS:.0f} s; it is restarting")
    outcome = outcomes[0]
    if isinstance(outcome, ModelReply):
        return outcome
    if isinstance(outcome, RequestError):
        raise outcome
    raise RequestError(500, f"the model failed: {type(outcome).__name__}: {str(outcome)[:300]}")


class ModelHttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, socket_number: int) -> None:
        super().__init__(("127.0.0.1", 0), ModelRequestHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = socket.socket(fileno=socket_number)
        self._slots = threading.BoundedSemaphore(MAX_CONCURRENT_REQUESTS)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._slots.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could start, so nothing else releases the slot
            self._slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        problem = sys.exc_info()[1]
        if not isinstance(problem, ConnectionError):  # the client may disconnect early
            print(f"request failed: {problem}", flush=True)


def main(socket_number: int) -> None:
    ModelRequestHandler.registry = registry = ModelRegistry()
    server = ModelHttpServer(socket_number)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for line in sys.stdin:
        with contextlib.suppress(ValueError, KeyError):
            registry.register_from_line(line)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
