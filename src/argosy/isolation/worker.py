"""The main loop of a confined worker: reads a call, runs the function, writes the answer, until the socket closes.

In: call frames on a socket. Out: answer frames. Never: imports a module; answers twice; sends a traceback.
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
from argosy.isolation import message_frames

Function = Callable[[Any], Any]
_LARGE_PAYLOAD_BYTES = 1 << 20


def refuse_calls(channel: socket.socket, reason: str) -> NoReturn:
    """Report why this worker accepts no calls, and exit."""
    channel.sendall(message_frames.pack_answer(message_frames.READY, 0, orjson.dumps({"refused": reason})))
    os._exit(0)


def serve_calls(channel: socket.socket, report: dict[str, Any]) -> NoReturn:
    """Report the confinement in force, then answer calls until the socket closes, and exit."""
    sys.dont_write_bytecode = True
    channel.sendall(message_frames.pack_answer(message_frames.READY, 0, orjson.dumps(report)))
    calls = channel.makefile("rb", buffering=1 << 16)
    memory = resource.getrlimit(resource.RLIMIT_AS)
    heads: dict[bytes, tuple[Function | str, float, int]] = {}
    while prefix := calls.read(message_frames.CALL_HEADER.size):
        length, serial, head_length = message_frames.CALL_HEADER.unpack(prefix)
        head = calls.read(head_length)
        settings = heads.get(head)
        if settings is None:
            name, cpu, output = orjson.loads(head)
            settings = heads[head] = (_find_function(name, memory), cpu, output)
        function, cpu, output = settings
        # The default action of SIGPROF ends the process, even within C code.
        signal.setitimer(signal.ITIMER_PROF, cpu)
        kind, body = _run_call(
            function,
            calls.read,
            length + message_frames.LENGTH.size - message_frames.CALL_HEADER.size - head_length,
            output,
        )
        channel.sendall(message_frames.pack_answer(kind, serial, body))
        body = b""  # else a large answer would count as memory of the next call
    os._exit(0)


def _run_call(function: Function | str, read: Callable[[int], bytes], length: int, output: int) -> tuple[bytes, bytes]:
    try:
        payload = _decode(read(length))
        if isinstance(function, str):
            return message_frames.UNKNOWN, function.encode()
        answer = function(payload)
        if _is_longer(answer, output):
            return message_frames.TOO_LARGE, b""
        body = _encode(answer)
        return (message_frames.DONE, body) if len(body) <= output else (message_frames.TOO_LARGE, b"")
    except MemoryError:
        return message_frames.NO_MEMORY, b""
    except BaseException as problem:  # including SystemExit: a function must not end the worker by raising
        return message_frames.RAISED, _format_error(problem)


def _limit_memory(soft_limit: int, hard_limit: int, function: Function) -> Function:
    """Wrap a function with its memory limit; memory above that is reserved for decoding and encoding."""

    def limited_call(payload: Any) -> Any:
        resource.setrlimit(resource.RLIMIT_AS, (soft_limit, hard_limit))
        try:
            return function(payload)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (hard_limit, hard_limit))

    return function if soft_limit == hard_limit else limited_call


def _decode(payload: bytes) -> Any:
    # orjson allocates about ten times the text's size at once; the slower json module leaves memory for the function.
    return orjson.loads(payload) if len(payload) <= _LARGE_PAYLOAD_BYTES else json.loads(payload)


def _is_longer(answer: Any, limit: int) -> bool:
    """True if the answer as JSON is certainly longer. Takes bounded time, even for values that contain themselves."""
    length, pending = 0, [answer]
    while pending and length <= limit:
        value = pending.pop()
        if isinstance(value, str):
            length += len(value)
        elif isinstance(value, dict):
            length += len(value) + sum(len(key) for key in value if isinstance(key, str))
            pending.extend(value.values())
        elif isinstance(value, list | tuple):
            length += len(value)
            pending.extend(value)
    return length > limit


def _encode(answer: Any) -> bytes:
    try:
        return orjson.dumps(answer, option=orjson.OPT_PASSTHROUGH_DATACLASS)
    except orjson.JSONEncodeError as problem:
        raise ArgosyError(f"the answer is not JSON: {problem}") from None


def _format_error(problem: BaseException) -> bytes:
    """Format an exception: ArgosyErrors by their message, others with their class name."""
    name = type(problem).__name__
    try:
        message = str(problem)
    except BaseException:
        message = ""
    if not isinstance(problem, ArgosyError) or not message:
        message = f"{name}: {message}" if message else name
    text = message[: message_frames.MAX_ERROR_CHARACTERS].encode("utf-8", "replace")
    return text if len(message) <= message_frames.MAX_ERROR_CHARACTERS else text + " …".encode()


def _find_function(name: str, memory: tuple[int, int]) -> Function | str:
    """Return the named function, or an error message. The fork server has already loaded the module."""
    module_name, _, attribute = name.partition(":")
    module = sys.modules.get(module_name)
    function = getattr(module, attribute, None)
    if not isinstance(function, FunctionType):
        return f"{module_name} has no function {attribute}"
    return _limit_memory(*memory, function)
