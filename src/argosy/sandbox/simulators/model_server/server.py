"""The process that answers: HTTP on a socket that it was given, for the models that it is told of, until nobody tells.

In: the number of a listening socket; on standard input a line of JSON for each model to serve or to forget.
Out: answers; on standard output what happens, each line after the host that it is of. Never: opens a connection; goes
on when standard input ends.
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

MOST_BYTES = 8 << 20  # of a request
MOST_AT_ONCE = 16
SILENCE = 10.0  # seconds without a byte of a request
STAMP = "%Y-%m-%dT%H:%M:%SZ"
PATIENCE = 30.0  # seconds for a model to answer
LOADING = 300.0  # seconds for it to be loaded
LOADED_SOON = 5.0  # seconds that a question waits for a model which is being loaded
ALIAS = "/openai"  # kserve: where its own runtime for text models answers
SUFFIX = ".localhost"
PROBE = "argosy-probe"  # who asks whether a model is ready, again and again: not worth a line


class Shelf:
    """The models, by host and by name."""

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
            say(entry.host, f"a stub answers for {entry.name}, {entry.source} is not loaded ({BY})")

    def find(self, host: str, path: str) -> Entry:
        """By the host that was asked for; or by the name, where only one model has it. Raises Refusal."""
        # a process that takes another's place is told of its models a moment later
        self._has_heard.wait(SILENCE)
        known = self._entries.get(_label(host))
        if known is not None:
            return known
        entries = list(self._entries.values())
        # the address of one model is never another's
        if host.rpartition(":")[0].lower().endswith(SUFFIX):
            raise Refusal(503, f"no model runs that answers as {host[:200]!r}; see why: argosy model list")
        named = [each for each in entries if f"/models/{each.name}" in path]
        for found in (entries, named):
            if len(found) == 1:
                return found[0]
        hosts = ", ".join(sorted(f"{each.host}{SUFFIX}" for each in entries)[:20]) or "none"
        raise Refusal(404, f"no model answers as {host[:200]!r}; hosts here: {hosts}")


def _label(host: str) -> str:
    """The first label, whatever comes after it: the host of a Route begins the same. A Service's is put together."""
    first, _, rest = (host.rpartition(":")[0] if ":" in host else host).lower().partition(".")
    namespace, _, last = rest.partition(".")
    return f"{first.removesuffix('-predictor')}-{namespace}" if f"{last}.".startswith("svc.") else first


def say(host: str, text: str) -> None:
    """One line of the model of this host; what a model itself prints has no host before it."""
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
    except BaseException as error:  # such as a lack of memory: somebody else's code ran
        _fail(entry, f"{type(error).__name__}: {str(error)[:300]}")
    else:
        entry.state = "loaded"
        entry.settled.set()
        ways = f"{MODELS}/{entry.name}:predict or /v2/models/{entry.name}/infer"
        say(entry.host, f"loaded in {time.monotonic() - began:.1f} s; ask {ways}")


def _give_up(entry: Entry) -> None:
    """It cannot be made to stop: a new process is made."""
    if entry.state == "loading":
        say(entry.host, f"{entry.name} has not been loaded in {LOADING:.0f} s")
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
            # kserve: a Pod that is not ready is asked nothing; who asks early waits
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
            os._exit(4)  # it cannot be made to stop; a new process is made

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding"):
            raise Refusal(411, "a request in chunks is not read; send it whole, with its Content-Length")
        text = self.headers.get("Content-Length") or "0"
        length = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
        if not 0 <= length <= MOST_BYTES:
            raise Refusal(413, f"a request has at most {MOST_BYTES >> 20} MiB")
        return self.rfile.read(length)

    def _send(self, reply: Reply) -> None:
        try:
            data = json.dumps(reply.document, default=str).encode() + b"\n"
        except (ValueError, RecursionError) as error:
            refusal = Refusal(500, f"what the model gave is no JSON: {error}").reply(is_openai=False)
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
        """Each request is told of once, by `_tell`."""


def _patiently(work: Any) -> Reply:
    """A model's own code may never end."""
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
        raise Refusal(504, f"the model has not answered in {PATIENCE:.0f} s; it is started anew")
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
        except BaseException:  # no thread could be had: nobody else gives the place back
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        problem = sys.exc_info()[1]
        if not isinstance(problem, ConnectionError):  # who asks may leave before the answer
            print(f"a request ended: {problem}", flush=True)


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
