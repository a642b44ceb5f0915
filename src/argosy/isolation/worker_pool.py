"""A bounded pool of confined workers that run untrusted input.

In: the name of a function, and JSON. Out: JSON, or an error that names the exceeded limit.
Never: runs the function in this process; reuses a worker that exceeded a limit.
"""

from __future__ import annotations

import asyncio
import math
import re
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from argosy.errors import ArgosyError, TransientError
from argosy.fair_share import Budget
from argosy.isolation.errors import CrashError, RefusedError, build_death_error, build_limit_error
from argosy.isolation.fair_slots import RESERVED_WORKERS, FairSlots
from argosy.isolation.fork_server_client import ForkServerClient
from argosy.isolation.limit_and_confinement_types import CallLimits, Confinement
from argosy.isolation.worker_connection import CPU_LIMIT_CALLS, CallBatch, ConfinedWorker, ConversationEnd

_FUNCTION_NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)", re.ASCII)
_READY_SECONDS = 10.0


class WorkerNeeds(NamedTuple):
    """Limits that are fixed when a worker is forked; calls with other limits get another worker."""

    memory: int
    cpu: float
    output: int


class WorkerPool:
    """Confined workers, shared fairly among tenants. A pool belongs to the event loop that first uses it, until that
    loop is closed."""

    def __init__(self, *, workers: int = 2, limits: CallLimits = CallLimits(), preload: Sequence[str] = ()) -> None:  # noqa: B008
        if workers < 1:
            raise ValueError("a pool needs at least one worker")
        self._size = workers
        self._limits = limits
        self._preload = tuple(preload)
        self._confinement = Confinement()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: ForkServerClient | None = None
        self._idle: list[tuple[WorkerNeeds, ConfinedWorker]] = []
        self._workers: dict[ConfinedWorker, ForkServerClient] = {}
        self._slots = FairSlots(workers)

    async def run(self, function: str, payload: Any, *, limits: CallLimits | None = None) -> Any:
        """Run `function(payload)` in a worker; raises LimitExceeded, ConfinedError, RefusedError or TransientError."""
        answer = (await self.run_batch(function, (payload,), limits=limits))[0]
        if isinstance(answer, ArgosyError):
            raise answer
        return answer

    async def run_batch(self, function: str, payloads: Sequence[Any], *, limits: CallLimits | None = None) -> list[Any]:
        """Run the function on each payload in one worker. The result of a failed payload is its error."""
        module = self._extract_module_name(function)
        batch = CallBatch(function, payloads, limits or self._limits)
        if batch.is_complete():
            return batch.answers
        self._bind_to_loop()
        while not batch.is_complete():  # after a killed call, wait for a new turn before the next call
            async with self._slots.hold() as slot:
                await self._run_on_worker(module, batch, slot.tenant.name)
        return batch.answers

    async def start(self) -> Confinement:
        """Start the fork server and one worker now instead of at the first call, and return the confinement."""
        self._bind_to_loop()
        async with self._slots.hold():
            if not self._idle:
                server = await self._get_server()
                self._return_to_idle(_build_needs(self._limits), await self._fork(server, _build_needs(self._limits)))
        return self._confinement

    async def close(self) -> None:
        """Stop all workers and the fork server, and wait for their end. Running calls raise TransientError."""
        self._closed = True
        for worker in list(self._workers):
            self._retire(worker)
        server, self._server = self._server, None
        if server is not None:
            if self._loop is asyncio.get_running_loop():
                await server.close()
            else:
                server.abandon()

    @property
    def max_memory_bytes(self) -> int:
        """Bytes that calls with the pool's default limits may use at once in all workers."""
        return (self._size + RESERVED_WORKERS) * self._limits.memory

    def list_depths(self) -> Mapping[str, int]:
        """Return the number of calls that wait for a worker, by tenant."""
        return self._slots.list_depths()

    def list_over_budget(self) -> Mapping[str, tuple[float, Budget]]:
        """Return recent worker seconds and the budget of each tenant over its budget."""
        return self._slots.scheduler.list_over_budget()

    def get_confinement(self) -> Confinement:
        """Return the confinement of the newest worker."""
        return self._confinement

    async def _run_on_worker(self, module: str, batch: CallBatch, tenant: str) -> None:
        worker = await self._acquire_worker(module, batch.limits, tenant)
        ending = None
        try:
            ending = await worker.run_batch(batch, partial(self._lower_priority, worker))
            if batch.is_complete():
                return
            self._refuse_if_closed()
            await self._record_failure(ending, worker, batch)
            batch.rewind()
        finally:
            if ending is ConversationEnd.COMPLETE and not self._closed:
                self._return_to_idle(_build_needs(batch.limits), worker)
            else:
                self._retire(worker)

    def _lower_priority(self, worker: ConfinedWorker) -> None:
        """Let quick calls run first. A priority cannot be raised again, so this is the worker's last call."""
        if (server := self._workers.get(worker)) is not None:
            server.lower_priority(worker.number)

    async def _record_failure(self, ending: ConversationEnd, worker: ConfinedWorker, batch: CallBatch) -> None:
        """Record the error of the call that was running when the conversation ended."""
        if ending is ConversationEnd.TIMED_OUT:
            batch.record_answer(build_limit_error("wall", batch.limits, batch.function))
        elif ending is ConversationEnd.ANSWER_TOO_LARGE:
            batch.record_answer(build_limit_error("output", batch.limits, batch.function))
        elif ending is ConversationEnd.PROTOCOL_ERROR:
            if worker.is_fresh:  # else an earlier call may be the cause, so this one gets another worker
                batch.record_answer(CrashError("the worker sent an unexpected answer", where=batch.function))
        elif ending is ConversationEnd.HUNG_UP:
            server = self._workers.get(worker)
            status = await server.find_exit_code(worker.number) if server else None
            if server is None or not server.is_alive:
                raise TransientError("confine: the fork server ended; try again")
            if worker.is_fresh or status != -signal.SIGKILL:  # the OOM killer may have killed it while it was idle
                batch.record_answer(build_death_error(status, batch.limits, batch.function))

    async def _acquire_worker(self, module: str, limits: CallLimits, tenant: str) -> ConfinedWorker:
        server = await self._get_server()
        if module not in server.loaded:
            async with self._starting:
                if module not in server.loaded:
                    await server.load([module])
        needs = _build_needs(limits)
        worker = self._take_idle_worker(needs, server.loaded[module], tenant)
        if worker is None:
            self._evict_idle(tenant)
            worker = await self._fork(server, needs)
        worker.tenant = tenant
        return worker

    def _take_idle_worker(self, needs: WorkerNeeds, generation: int, tenant: str) -> ConfinedWorker | None:
        """Prefer the tenant's own worker; take one of another tenant only if no more can be forked."""
        candidates = [
            worker for idle_needs, worker in self._idle
            if idle_needs == needs and worker.generation >= generation and worker.is_usable
        ]  # fmt: skip
        own = [worker for worker in candidates if worker.tenant == tenant]
        if not candidates or (not own and self._can_fork(tenant)):
            return None
        worker = (own or candidates)[-1]
        self._idle = [(idle_needs, other) for idle_needs, other in self._idle if other is not worker]
        return worker

    def _can_fork(self, tenant: str) -> bool:
        """True if one more worker may be forked. The reserve is used only if another tenant has a worker."""
        is_alone = all(worker.tenant == tenant for _, worker in self._idle)
        return self._slots.running + len(self._idle) <= self._size + (0 if is_alone else RESERVED_WORKERS)

    def _evict_idle(self, tenant: str) -> None:
        """Stop idle workers until one more may be forked, the tenant's own first."""
        while self._idle and not self._can_fork(tenant):
            idle = [worker for _, worker in self._idle]
            self._retire(next((worker for worker in idle if worker.tenant == tenant), idle[0]))

    async def _fork(self, server: ForkServerClient, needs: WorkerNeeds) -> ConfinedWorker:
        generation = server.generation
        number, channel = await server.fork(
            needs._asdict() | {"cpu_budget": math.ceil(needs.cpu * CPU_LIMIT_CALLS) + 1}
        )
        worker = ConfinedWorker(number, channel, generation=generation, cpu=needs.cpu)
        self._workers[worker] = server
        report = None
        try:
            report = await worker.wait_ready(_READY_SECONDS)
        finally:
            if report is None:
                self._retire(worker)
        if report is None:
            self._refuse_if_closed()
            raise TransientError("confine: a new worker did not start; its limits may be too low")
        self._confinement = Confinement(**(report | {"missing": tuple(report["missing"])}))
        return worker

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise TransientError("confine: the pool was closed")

    def _return_to_idle(self, needs: WorkerNeeds, worker: ConfinedWorker) -> None:
        if worker.is_worn():
            self._retire(worker)
        else:
            self._idle.append((needs, worker))

    def _retire(self, worker: ConfinedWorker) -> None:
        self._idle = [(needs, other) for needs, other in self._idle if other is not worker]
        server = self._workers.pop(worker, None)
        worker.close()
        if server is not None:
            server.kill(worker.number)

    async def _get_server(self) -> ForkServerClient:
        if self._server is not None and self._server.is_alive and not self._closed:
            return self._server
        async with self._starting:
            self._refuse_if_closed()
            if self._server is not None and not self._server.is_alive:
                self._discard_all()
            if self._server is None:
                self._server = await self._start_server()
            return self._server

    async def _start_server(self) -> ForkServerClient:
        server = ForkServerClient(asyncio.get_running_loop())
        try:
            await server.load(self._preload)
            self._refuse_if_closed()
        except BaseException:
            server.abandon()
            raise
        return server

    def _bind_to_loop(self) -> None:
        """Bind the pool to the running event loop; release workers of a closed loop."""
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise RuntimeError("a worker pool belongs to one event loop; create one for each")
        self._discard_all()
        self._loop = loop
        self._slots = FairSlots(self._size)
        self._starting = asyncio.Lock()

    def _discard_all(self) -> None:
        for worker in list(self._workers):
            self._retire(worker)
        server, self._server = self._server, None
        if server is not None:
            server.abandon()

    def _extract_module_name(self, function: str) -> str:
        match = _FUNCTION_NAME.fullmatch(function)
        module = match[1] if match else ""
        if not module.startswith("argosy.") and module not in self._preload:
            raise RefusedError(f"{function}: not a function of argosy or of a module that the pool preloads")
        return module


def _build_needs(limits: CallLimits) -> WorkerNeeds:
    return WorkerNeeds(limits.memory, limits.cpu, limits.output)
