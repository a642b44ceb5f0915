"""A pool of processes for heavy trusted work, so that the event loop is not blocked.

In: a trusted function (at module level) and its arguments. Out: its result, or its exception.
Never: runs untrusted code (see worker_pool.py); lets a worker outlive the deadline of its call, or this process.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

import argosy
from argosy.errors import LimitError, TransientError
from argosy.fair_share import Budget
from argosy.isolation.errors import OUT_OF_MEMORY, TIMED_OUT
from argosy.isolation.fair_slots import RESERVED_WORKERS, FairSlots, Slot
from argosy.isolation.scratch_folders import sweep_scratch_folders
from argosy.isolation.trusted_pool_worker import ANSWER_HEADER, LENGTH, NO_MEMORY, RAISED, READY

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

# First on the path: a worker runs the same code as its parent, whatever else is installed.
_BOOT_CODE = """import sys
sys.path.insert(0, sys.argv.pop())
from argosy.isolation.trusted_pool_worker import main
main(sys.argv[1:])"""
_START_SECONDS = 30.0
_END_SECONDS = 2.0
_CHUNK_BYTES = 1 << 18
SURPLUS_IDLE_SECONDS = 60.0  # idle time after which a worker beyond the usual number ends


class WorkerAnswer(NamedTuple):
    kind: bytes
    is_worn: bool
    cpu_seconds: float
    body: bytes


class ProcessPool:
    """Worker processes, started on demand, which keep their caches between calls.

    One tenant uses at most `workers`; one more is reserved for tenants that have none: see `FairShareScheduler`.
    """

    def __init__(
        self, *, workers: int = 2, seconds: float = 60.0, memory: int = 512 << 20, modules: Sequence[str] = ()
    ) -> None:
        """`modules` are imported by each worker as it starts."""
        if workers < 1 or seconds <= 0 or memory <= 0:
            raise ValueError("a process pool needs at least one worker, and positive seconds and memory")
        self._size = workers
        self._seconds = seconds
        self._memory = memory
        self._modules = modules
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: list[_PoolProcess] = []
        self._prestarted: _PoolProcess | None = None
        self._workers: set[_PoolProcess] = set()
        self._exits: set[asyncio.Future[int]] = set()
        self._surplus_timer: asyncio.TimerHandle | None = None
        self._slots = FairSlots(workers)

    @property
    def max_workers(self) -> int:
        return self._size + RESERVED_WORKERS

    @property
    def max_memory_bytes(self) -> int:
        """Bytes that all workers may use at once; programs that they run have their own limits."""
        return self.max_workers * self._memory

    def list_depths(self) -> Mapping[str, int]:
        """Return the number of calls that wait for a worker, by tenant."""
        return self._slots.list_depths()

    def list_over_budget(self) -> Mapping[str, tuple[float, Budget]]:
        """Return recent worker seconds and the budget of each tenant over its budget."""
        return self._slots.scheduler.list_over_budget()

    def start_first_worker(self) -> None:
        """Start the first worker without waiting for it, so that it may be ready at the first call."""
        if not self._workers and not self._closed:
            with suppress(OSError):  # the first call tries again, and reports the error
                self._prestarted = _PoolProcess(self._memory, self._modules)
                self._workers.add(self._prestarted)

    async def run(
        self, function: Callable[[*Arguments], T], *args: *Arguments, seconds: float | None = None, where: str = ""
    ) -> T:
        """Run a function. Raises its exception; LimitError, or TransientError if the worker died, with `where`."""
        call = pickle.dumps((function, args), protocol=pickle.HIGHEST_PROTOCOL)
        if len(call) > self._memory // 2:  # a worker could not even read it
            raise self._build_memory_error(where)
        self._bind_to_loop()
        async with self._slots.hold() as slot:
            answer, was_fresh = await self._call_worker(call, seconds or self._seconds, where, slot)
            if answer.kind == NO_MEMORY and not was_fresh:  # caches of earlier calls may have used the memory
                answer, _ = await self._call_worker(call, seconds or self._seconds, where, slot)
        if answer.kind == NO_MEMORY:
            raise self._build_memory_error(where)
        value = pickle.loads(answer.body)  # noqa: S301  from our own process, which runs only our code
        if answer.kind == RAISED:
            raise value
        result: T = value
        return result

    async def close(self) -> None:
        """Stop all workers and wait for their end. Running calls raise TransientError."""
        self._closed = True
        if self._surplus_timer is not None:
            self._surplus_timer.cancel()
        idle, self._idle = self._idle, []
        workers, self._workers = self._workers, set()
        for worker in workers.difference(idle):
            worker.kill()  # the caller that waits for its answer gets an error
        for worker in idle:
            worker.close_socket()
        exits = [exit_future for exit_future in self._exits if exit_future.get_loop() is asyncio.get_running_loop()]
        await asyncio.gather(*exits, *(asyncio.to_thread(worker.wait) for worker in workers))

    async def _call_worker(self, call: bytes, seconds: float, where: str, slot: Slot) -> tuple[WorkerAnswer, bool]:
        worker = await self._acquire_worker(slot.tenant.name)
        was_fresh, answer = worker.calls == 0, None
        try:
            async with asyncio.timeout(seconds):
                answer = await worker.call(call)
        except TimeoutError:
            error = LimitError(f"takes longer than {seconds:g} s; make it smaller, or split it", where=where)
            error.exhaustion_reason = TIMED_OUT
            raise error from None
        except (OSError, EOFError):
            raise await self._build_death_error(worker, where) from None
        finally:
            if answer is None or answer.is_worn or answer.kind == NO_MEMORY or self._closed:
                self._retire(worker)
            else:
                self._return_to_idle(worker)
        slot.cpu_seconds += answer.cpu_seconds
        return answer, was_fresh

    def _build_memory_error(self, where: str) -> LimitError:
        size_mib = self._memory >> 20
        error = LimitError(f"takes more than {size_mib} MiB of memory; make it smaller, or split it", where=where)
        error.exhaustion_reason = OUT_OF_MEMORY
        return error

    async def _build_death_error(self, worker: _PoolProcess, where: str) -> TransientError:
        prefix = f"{where}: " if where else ""
        if self._closed:
            return TransientError(f"{prefix}the process pool was closed")
        cause = await asyncio.to_thread(worker.describe_exit)
        return TransientError(f"{prefix}a worker process ended {cause}before its work was done; try again")

    async def _acquire_worker(self, tenant: str) -> _PoolProcess:
        if self._closed:
            raise TransientError("the process pool was closed")
        for worker in [worker for worker in self._idle if not worker.is_running()]:
            self._idle.remove(worker)
            self._retire(worker)
        worker = self._take_idle_worker(tenant) or await self._start_worker()
        worker.tenant = tenant
        return worker

    def _take_idle_worker(self, tenant: str) -> _PoolProcess | None:
        """Prefer the tenant's own worker, then the most recently used one, whose caches are warm.

        A tenant over its budget does not get workers of others, because its calls tend to kill their worker.
        """
        own = [worker for worker in self._idle if worker.tenant == tenant]
        if not own and self._slots.is_over_budget(tenant) and len(self._workers) < self.max_workers:
            return None
        candidates = own or self._idle
        if not candidates:
            return None
        worker = candidates[-1]
        self._idle.remove(worker)
        return worker

    def _return_to_idle(self, worker: _PoolProcess) -> None:
        """Return a worker to the idle list; workers beyond the usual number end after some idle time."""
        worker.idle_since = asyncio.get_running_loop().time()
        self._idle.append(worker)
        self._schedule_surplus_end()

    def _schedule_surplus_end(self) -> None:
        """Keep exactly one timer while a worker beyond the usual number is idle."""
        if self._surplus_timer is None and self._idle and len(self._workers) > self._size and not self._closed:
            loop = asyncio.get_running_loop()
            due = min(worker.idle_since for worker in self._idle) + SURPLUS_IDLE_SECONDS
            self._surplus_timer = loop.call_at(due, self._end_surplus)

    def _end_surplus(self) -> None:
        self._surplus_timer = None
        due = asyncio.get_running_loop().time() - SURPLUS_IDLE_SECONDS
        for worker in [worker for worker in self._idle if worker.idle_since <= due]:
            if len(self._workers) > self._size and not self._closed:
                self._idle.remove(worker)
                self._retire(worker)
        self._schedule_surplus_end()

    async def _start_worker(self) -> _PoolProcess:
        try:
            worker, self._prestarted = self._prestarted or _PoolProcess(self._memory, self._modules), None
        except OSError as error:
            raise TransientError(f"no worker process can be started: {error.strerror}; try again") from error
        self._workers.add(worker)
        ready = False
        try:
            async with asyncio.timeout(_START_SECONDS):
                ready = (await worker.read_answer()).kind == READY
        except (OSError, EOFError, TimeoutError):  # TimeoutError is an OSError, but is named to be explicit
            cause = await asyncio.to_thread(worker.describe_exit)
            raise TransientError(f"a worker process did not start {cause}; try again") from None
        finally:
            if not ready:
                self._retire(worker)
        return worker

    def _retire(self, worker: _PoolProcess) -> None:
        """Kill a worker now; a thread waits for its end, which takes a while if it has much memory."""
        self._workers.discard(worker)
        worker.kill()
        worker.close_socket()
        exit_future = asyncio.get_running_loop().run_in_executor(None, worker.wait)
        self._exits.add(exit_future)
        exit_future.add_done_callback(self._exits.discard)

    def _bind_to_loop(self) -> None:
        """Bind the pool to the running event loop."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            if self._loop is not None and not self._loop.is_closed():
                raise RuntimeError("a process pool belongs to one event loop; create one for each")
            self._loop, self._slots, self._exits = loop, FairSlots(self._size), set()
            self._surplus_timer = None


class _PoolProcess:
    """One worker process, and the socket to it."""

    def __init__(self, memory: int, modules: Sequence[str]) -> None:
        self._channel, worker_socket = socket.socketpair()
        self._channel.setblocking(False)
        self.calls = 0
        self.tenant, self.idle_since = "", 0.0
        package_root = os.path.dirname(os.path.dirname(os.path.abspath(argosy.__file__)))
        numbers = [str(number) for number in (worker_socket.fileno(), os.getpid(), memory)]
        try:
            with worker_socket:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-X", "utf8", "-c", _BOOT_CODE, *numbers, package_root],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(worker_socket.fileno(),),
                    start_new_session=True,  # Ctrl-C must only reach this process
                )
        except OSError:
            self._channel.close()
            raise
        setup = pickle.dumps(([os.path.abspath(entry) for entry in sys.path], tuple(modules)))
        with suppress(OSError):  # it has already ended: the caller that waits for READY gets an error
            self._channel.send(LENGTH.pack(len(setup)) + setup)

    async def call(self, call: bytes) -> WorkerAnswer:
        self.calls += 1
        await asyncio.get_running_loop().sock_sendall(self._channel, LENGTH.pack(len(call)) + call)
        return await self.read_answer()

    async def read_answer(self) -> WorkerAnswer:
        length, kind, is_worn, cpu_seconds = ANSWER_HEADER.unpack(await self._receive(ANSWER_HEADER.size))
        return WorkerAnswer(kind, is_worn, cpu_seconds, await self._receive(length))

    async def _receive(self, length: int) -> bytes:
        loop = asyncio.get_running_loop()
        data = bytearray()
        while len(data) < length:
            chunk: Any = await loop.sock_recv(self._channel, min(_CHUNK_BYTES, length - len(data)))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def describe_exit(self) -> str:
        """Return how it ended, for the middle of a sentence; "" if unknown. Blocks: not for the event loop."""
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(_END_SECONDS)
            with suppress(ValueError):
                return f"by {signal.Signals(-code).name} " if code < 0 else f"with code {code} "
        return ""

    def close_socket(self) -> None:
        self._channel.close()

    def kill(self) -> None:
        """Kill the process and its process group."""
        with suppress(ProcessLookupError, PermissionError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for its end after its socket was closed or it was killed; kill it if it does not end in time."""
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if code < 0:  # a killed process could not remove its folders
            sweep_scratch_folders()
        return code
