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

from argosy.sandbox.simulators.model_server.messages import BY, Entry, Refusal, Reply, Request
from argosy.sandbox.simulators.model_server.model_file import Unloadable, load
from argosy.sandbox.simulators.model_server.protocols import MODELS, answer, is_openai
from argosy.sandbox.simulators.model_server.stub_model import Stub

MOST_BYTES = 8 << 20  # maximum size of a request
MOST_AT_ONCE = 16
SILENCE = 10.0  # seconds without receiving a byte of a request
STAMP = "%Y-%m-%dT%H:%M:%SZ"
PATIENCE = 30.0  # seconds for a model to respond
LOADING = 300.0  # seconds for a model to load
LOADED_SOON = 5.0  # seconds that a request waits for a model that is loading
ALIAS = "/openai"  # kserve: path prefix of its runtime for text models
SUFFIX = ".localhost"
PROBE = "argosy-probe"  # frequent readiness probes are not logged


class Shelf:
    """The models by host and by name."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._has_heard = threading.Event()

    def hear(self, line: str) -> None:
        self._hear(json.loads(line))
        self._has_heard.set()

    def _hear(self, told: dict[str, Any]) -> None:
        if "forget" in told:
            self._entries.pop(told["forget"], None)
            return
        known = self._entries.get(told["host"])
        if known is not None and known.told == told:
            return
        entry = Entry(told["host"], told["name"], source=told.get("source", ""), told=told)
        if told.get("folder"):
            self._entries[entry.host] = entry
            threading.Thread(target=_load, args=(entry, told["folder"]), daemon=True).start()
        else:
            entry.model, entry.state = Stub(entry.name), "loaded"
            entry.settled.set()
            self._entries[entry.host] = entry
            say(entry.host, f"a stub answers for {entry.name}; {entry.source} is not loaded ({BY})")

    def find(self, host: str, path: str) -> Entry:
        """Find a model by the requested host, or by name if only one model has it. Raises RequestError."""
        # a restarted process receives its models a moment later
        self._has_heard.wait(SILENCE)
        known = self._entries.get(_label(host))
        if known is not None:
            return known
        entries = list(self._entries.values())
        # the address of one model never serves another
        if host.rpartition(":")[0].lower().endswith(SUFFIX):
            raise Refusal(503, f"no model runs for host {host[:200]!r}; see why: argosy model list")
        named = [each for each in entries if f"/models/{each.name}" in path]
        for found in (entries, named):
            if len(found) == 1:
                return found[0]
        hosts = ", ".join(sorted(f"{each.host}{SUFFIX}" for each in entries)[:20]) or "none"
        raise Refusal(404, f"no model for host {host[:200]!r}; hosts of this server: {hosts}")


def _label(host: str) -> str:
    """Return the first label of the host.

    The host of a Route begins with the same label; for the host of a Service the label is built from name and
    namespace.
    """
    first, _, rest = (host.rpartition(":")[0] if ":" in host else host).lower().partition(".")
    namespace, _, last = rest.partition(".")
    return f"{first.removesuffix('-predictor')}-{namespace}" if f"{last}.".startswith("svc.") else first


def say(host: str, text: str) -> None:
    """Print a log line for the model of this host; output of the model itself has no host prefix."""
    lines = text.splitlines() or [""]
    print("\n".join(f"{host} {time.strftime(STAMP, time.gmtime())} {line}" for line in lines), flush=True)


def _load(entry: Entry, folder: str) -> None:
    began = time.monotonic()
    watch = threading.Timer(LOADING, _give_up, (entry,))
    watch.daemon = True
    watch.start()
    say(entry.host, f"loading {entry.name} from {entry.source} ({BY})")
    try:
        entry.model = load(folder)
    except Unloadable as error:
        if error.__cause__ is not None:
            say(entry.host, "".join(traceback.format_exception(error.__cause__)))
        _fail(entry, str(error))
    except BaseException as error:  # for example MemoryError: user code ran
        _fail(entry, f"{type(error).__name__}: {str(error)[:300]}")
    else:
        entry.state = "loaded"
        entry.settled.set()
        ways = f"{MODELS}/{entry.name}:predict or /v2/models/{entry.name}/infer"
        say(entry.host, f"loaded in {time.monotonic() - began:.1f} s; query {ways}")


def _give_up(entry: Entry) -> None:
    """Exit, because a loading thread cannot be stopped; the supervisor starts a new process."""
    if entry.state == "loading":
        say(entry.host, f"{entry.name} did not load within {LOADING:.0f} s")
        os._exit(4)


def _fail(entry: Entry, why: str) -> None:
    entry.state, entry.message = "failed", why
    entry.settled.set()
    say(entry.host, f"{entry.name} cannot be served: {why}")


class Requests(BaseHTTPRequestHandler):
    server_version, sys_version = f"argosy-models ({BY})", ""
    timeout = SILENCE
    shelf: Shelf

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        path, began, host = self.path.partition("?")[0].removeprefix(ALIAS), time.monotonic(), ""
        try:
            request = Request(self.command, path, self._body())
            entry = self.shelf.find(self.headers.get("Host") or "", path)
            host = entry.host
            # kserve: a Pod that is not ready gets no requests; an early request waits
            if request.method == "POST":
                entry.settled.wait(LOADED_SOON)
            reply = _patiently(lambda: answer(request, entry))
        except Refusal as refusal:
            reply = refusal.reply(is_openai=is_openai(path))
        if reply.events is not None:
            self._stream(reply)
        else:
            self._send(reply)
        self._tell(host, path, reply, began)
        if reply.status == 504:
            os._exit(4)  # the thread cannot be stopped; the supervisor starts a new process

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding"):
            raise Refusal(411, "chunked requests are not supported; send a Content-Length")
        text = self.headers.get("Content-Length") or "0"
        length = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
        if not 0 <= length <= MOST_BYTES:
            raise Refusal(413, f"the request is larger than {MOST_BYTES >> 20} MiB")
        return self.rfile.read(length)

    def _send(self, reply: Reply) -> None:
        try:
            data = json.dumps(reply.document, default=str).encode() + b"\n"
        except (ValueError, RecursionError) as error:
            refusal = Refusal(500, f"the model's result is not JSON: {error}").reply(is_openai=False)
            reply, data = refusal, json.dumps(refusal.document).encode() + b"\n"
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in reply.events or ():
            self.wfile.write(f"data: {event}\n\n".encode())

    def _tell(self, host: str, path: str, reply: Reply, began: float) -> None:
        if host and self.headers.get("User-Agent") != PROBE:
            error = reply.document.get("error") if reply.status >= 400 else None
            why = error.get("message") if isinstance(error, dict) else error
            took = f"{(time.monotonic() - began) * 1000:.0f} ms"
            say(host, f"{self.command} {path!a} {reply.status} {took}{f': {why}' if why else ''}")

    def log_message(self, format: str, *args: Any) -> None:
        """Do nothing: `_log_request` logs each request once."""


def _patiently(work: Any) -> Reply:
    """Run the work in a thread with a timeout, because a model's own code may never end."""
    found: list[Reply | BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if not found:
        raise Refusal(504, f"the model did not respond within {PATIENCE:.0f} s; it is restarting")
    outcome = found[0]
    if isinstance(outcome, Reply):
        return outcome
    if isinstance(outcome, Refusal):
        raise outcome
    raise Refusal(500, f"the model failed: {type(outcome).__name__}: {str(outcome)[:300]}")


class Door(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, number: int) -> None:
        super().__init__(("127.0.0.1", 0), Requests, bind_and_activate=False)
        self.socket.close()
        self.socket = socket.socket(fileno=number)
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._places.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could start, so nothing else releases the slot
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        problem = sys.exc_info()[1]
        if not isinstance(problem, ConnectionError):  # the client may disconnect early
            print(f"request failed: {problem}", flush=True)


def main(number: int) -> None:
    Requests.shelf = shelf = Shelf()
    door = Door(number)
    threading.Thread(target=door.serve_forever, daemon=True).start()
    for line in sys.stdin:
        with contextlib.suppress(ValueError, KeyError):
            shelf.hear(line)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
