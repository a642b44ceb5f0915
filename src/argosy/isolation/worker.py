"""A worker's life after it was confined: read a call, run the function, write the answer, until the parent hangs up.

In: call frames on a socket. Out: answer frames. Never: loads a module; answers twice; sends a traceback.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, NoReturn

import orjson

from argosy.errors import ArgosyError
from argosy.isolation import frames

Function = Callable[[Any], Any]
_LARGE = 1 << 20


def refuse(channel: socket.socket, sentence: str) -> NoReturn:
    """Say why no call is answered here. Ends the process."""
    channel.sendall(frames.pack_answer(frames.READY, 0, orjson.dumps({"refused": sentence})))
    os._exit(0)


def serve(channel: socket.socket, report: dict[str, Any]) -> NoReturn:
    """Say what is in force, then answer calls. Ends the process."""
    sys.dont_write_bytecode = True
    channel.sendall(frames.pack_answer(frames.READY, 0, orjson.dumps(report)))
    calls = channel.makefile("rb", buffering=1 << 16)
    memory = resource.getrlimit(resource.RLIMIT_AS)
    heads: dict[bytes, tuple[Function | str, float, int]] = {}
    while prefix := calls.read(frames.CALL.size):
        length, serial, head_length = frames.CALL.unpack(prefix)
        head = calls.read(head_length)
        known = heads.get(head)
        if known is None:
            name, cpu, output = orjson.loads(head)
            known = heads[head] = (_find(name, memory), cpu, output)
        function, cpu, output = known
        # The default action of this signal is to end the process, in the middle of C code too.
        signal.setitimer(signal.ITIMER_PROF, cpu)
        kind, body = _answer(function, calls.read, length + frames.LENGTH.size - frames.CALL.size - head_length, output)
        channel.sendall(frames.pack_answer(kind, serial, body))
        body = b""  # or a large answer would be charged to the next call
    os._exit(0)


def _answer(function: Function | str, read: Callable[[int], bytes], length: int, output: int) -> tuple[bytes, bytes]:
    try:
        payload = _decode(read(length))
        if isinstance(function, str):
            return frames.UNKNOWN, function.encode()
        answer = function(payload)
        if _is_longer(answer, output):
            return frames.TOO_LARGE, b""
        body = _encode(answer)
        return (frames.DONE, body) if len(body) <= output else (frames.TOO_LARGE, b"")
    except MemoryError:
        return frames.NO_MEMORY, b""
    except BaseException as problem:  # SystemExit too: a function does not end the worker by raising
        return frames.RAISED, _text(problem)


def _within(limit: int, most: int, function: Function) -> Function:
    """The function with the memory that is its own; what jail.py set aside above that is for reading and writing."""

    def call(payload: Any) -> Any:
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
        try:
            return function(payload)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

    return function if limit == most else call


def _decode(payload: bytes) -> Any:
    # orjson sets aside about ten times the text's size at once; the slower reader leaves that memory to the function.
    return orjson.loads(payload) if len(payload) <= _LARGE else json.loads(payload)


def _is_longer(answer: Any, limit: int) -> bool:
    """Whether the answer as JSON is surely longer; finds out in bounded time for values that contain themselves too."""
    length, left = 0, [answer]
    while left and length <= limit:
        value = left.pop()
        if isinstance(value, str):
            length += len(value)
        elif isinstance(value, dict):
            length += len(value) + sum(len(key) for key in value if isinstance(key, str))
            left.extend(value.values())
        elif isinstance(value, list | tuple):
            length += len(value)
            left.extend(value)
    return length > limit


def _encode(answer: Any) -> bytes:
    try:
        return orjson.dumps(answer, option=orjson.OPT_PASSTHROUGH_DATACLASS)
    except orjson.JSONEncodeError as problem:
        raise ArgosyError(f"the answer is not JSON: {problem}") from None


def _text(problem: BaseException) -> bytes:
    """What the exception says: our own errors as they are, others with their class's name."""
    name = type(problem).__name__
    try:
        said = str(problem)
    except BaseException:
        said = ""
    if not isinstance(problem, ArgosyError) or not said:
        said = f"{name}: {said}" if said else name
    text = said[: frames.TEXT_LIMIT].encode("utf-8", "replace")
    return text if len(said) <= frames.TEXT_LIMIT else text + " …".encode()


def _find(name: str, memory: tuple[int, int]) -> Function | str:
    """The function that `name` stands for, or why there is none. The fork server has loaded the module already."""
    module_name, _, attribute = name.partition(":")
    module = sys.modules.get(module_name)
    function = getattr(module, attribute, None)
    if not isinstance(function, FunctionType):
        return f"{module_name} has no function {attribute}"
    return _within(*memory, function)
