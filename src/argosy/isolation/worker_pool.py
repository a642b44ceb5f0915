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
from argosy.isolation.errors import CrashError, RefusedError, death, over_limit
from argosy.isolation.fair_slots import RESERVE, FairSlots
from argosy.isolation.fork_server_client import Server
from argosy.isolation.limits import Confinement, Limits
from argosy.isolation.worker_connection import CPU_LIVES, Batch, Ending, Worker

_NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)", re.ASCII)
_READY_SECONDS = 10.0


class Needs(NamedTuple):
    """Limits that are fixed when a worker is forked; calls with other limits get another worker."""

    memory: int
    cpu: float
    output: int


class Pool:
    """Confined workers, shared fairly among tenants. A pool belongs to the event loop that first uses it, until that
    loop is closed."""

    def __init__(self, *, workers: int = 2, limits: Limits = Limits(), preload: Sequence[str] = ()) -> None:  # noqa: B008
        if workers < 1:
            raise ValueError("a pool needs at least one worker")
        self._size = workers
        self._limits = limits
        self._preload = tuple(preload)
        self._confinement = Confinement()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._idle: list[tuple[Needs, Worker]] = []
        self._all: dict[Worker, Server] = {}
        self._slots = FairSlots(workers)

    async def run(self, function: str, payload: Any, *, limits: Limits | None = None) -> Any:
        """Run `function(payload)` in a worker; raises LimitExceeded, ConfinedError, RefusedError or TransientError."""
        answer = (await self.run_batch(function, (payload,), limits=limits))[0]
        if isinstance(answer, ArgosyError):
            raise answer
        return answer

    async def run_batch(self, function: str, payloads: Sequence[Any], *, limits: Limits | None = None) -> list[Any]:
        """Run the function on each payload in one worker. The result of a failed payload is its error."""
        module = self._module_of(function)
        batch = Batch(function, payloads, limits or self._limits)
        if batch.is_complete():
            return batch.answers
        self._settle()
        while not batch.is_complete():  # after a killed call, wait for a new turn before the next call
            async with self._slots.hold() as slot:
                await self._converse(module, batch, slot.tenant.name)
        return batch.answers

    async def start(self) -> Confinement:
        """Start the fork server and one worker now instead of at the first call, and return the confinement."""
        self._settle()
        async with self._slots.hold():
            if not self._idle:
                server = await self._running()
                self._keep(_needs(self._limits), await self._fork(server, _needs(self._limits)))
        return self._confinement

    async def close(self) -> None:
        """Stop all workers and the fork server, and wait for their end. Running calls raise TransientError."""
        self._closed = True
        for worker in list(self._all):
            self._retire(worker)
        server, self._server = self._server, None
        if server is not None:
            if self._loop is asyncio.get_running_loop():
                await server.close()
            else:
                server.abandon()

    @property
    def max_memory(self) -> int:
        """Bytes that calls with the pool's default limits may use at once in all workers."""
        return (self._size + RESERVE) * self._limits.memory

    def depths(self) -> Mapping[str, int]:
        """Return the number of calls that wait for a worker, by tenant."""
        return self._slots.depths()

    def list_over_budget(self) -> Mapping[str, tuple[float, Budget]]:
        """Return recent worker seconds and the budget of each tenant over its budget."""
        return self._slots.shares.list_over_budget()

    def report(self) -> Confinement:
        """Return the confinement of the newest worker."""
        return self._confinement

    async def _converse(self, module: str, batch: Batch, tenant: str) -> None:
        worker = await self._worker_for(module, batch.limits, tenant)
        ending = None
        try:
            ending = await worker.converse(batch, partial(self._lower_priority, worker))
            if batch.is_complete():
                return
            self._refuse_if_closed()
            await self._explain(ending, worker, batch)
            batch.rewind()
        finally:
            if ending is Ending.COMPLETE and not self._closed:
                self._keep(_needs(batch.limits), worker)
            else:
                self._retire(worker)

    def _lower_priority(self, worker: Worker) -> None:
        """Let quick calls run first. A priority cannot be raised again, so this is the worker's last call."""
        if (server := self._all.get(worker)) is not None:
            server.lower_priority(worker.number)

    async def _explain(self, ending: Ending, worker: Worker, batch: Batch) -> None:
        """Record the error of the call that was running when the conversation ended."""
        if ending is Ending.LATE:
            batch.answer(over_limit("wall", batch.limits, batch.function))
        elif ending is Ending.FLOOD:
            batch.answer(over_limit("output", batch.limits, batch.function))
        elif ending is Ending.ASTRAY:
            if worker.is_fresh:  # else an earlier call may be the cause, so this one gets another worker
                batch.answer(CrashError("the worker sent an unexpected answer", where=batch.function))
        elif ending is Ending.HUNG_UP:
            server = self._all.get(worker)
            status = await server.status(worker.number) if server else None
            if server is None or not server.alive:
                raise TransientError("confine: the fork server ended; try again")
            if worker.is_fresh or status != -signal.SIGKILL:  # the OOM killer may have killed it while it was idle
                batch.answer(death(status, batch.limits, batch.function))

    async def _worker_for(self, module: str, limits: Limits, tenant: str) -> Worker:
        server = await self._running()
        if module not in server.loaded:
            async with self._starting:
                if module not in server.loaded:
                    await server.load([module])
        needs = _needs(limits)
        worker = self._find_idle(needs, server.loaded[module], tenant)
        if worker is None:
            self._make_room(tenant)
            worker = await self._fork(server, needs)
        worker.tenant = tenant
        return worker

    def _find_idle(self, needs: Needs, generation: int, tenant: str) -> Worker | None:
        """Prefer the tenant's own worker; take one of another tenant only if no more can be forked."""
        fit = [
            worker for known, worker in self._idle
            if known == needs and worker.generation >= generation and worker.usable
        ]  # fmt: skip
        own = [worker for worker in fit if worker.tenant == tenant]
        if not fit or (not own and self._has_room(tenant)):
            return None
        worker = (own or fit)[-1]
        self._idle = [(known, other) for known, other in self._idle if other is not worker]
        return worker

    def _has_room(self, tenant: str) -> bool:
        """True if one more worker may be forked. The reserve is used only if another tenant has a worker."""
        is_alone = all(worker.tenant == tenant for _, worker in self._idle)
        return self._slots.running + len(self._idle) <= self._size + (0 if is_alone else RESERVE)

    def _make_room(self, tenant: str) -> None:
        """Stop idle workers until one more may be forked, the tenant's own first."""
        while self._idle and not self._has_room(tenant):
            idle = [worker for _, worker in self._idle]
            self._retire(next((worker for worker in idle if worker.tenant == tenant), idle[0]))

    async def _fork(self, server: Server, needs: Needs) -> Worker:
        generation = server.generation
        number, channel = await server.fork(needs._asdict() | {"cpu_budget": math.ceil(needs.cpu * CPU_LIVES) + 1})
        worker = Worker(number, channel, generation=generation, cpu=needs.cpu)
        self._all[worker] = server
        report = None
        try:
            report = await worker.ready(_READY_SECONDS)
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

    def _keep(self, needs: Needs, worker: Worker) -> None:
        if worker.is_worn():
            self._retire(worker)
        else:
            self._idle.append((needs, worker))

    def _retire(self, worker: Worker) -> None:
        self._idle = [(needs, other) for needs, other in self._idle if other is not worker]
        server = self._all.pop(worker, None)
        worker.close()
        if server is not None:
            server.kill(worker.number)

    async def _running(self) -> Server:
        if self._server is not None and self._server.alive and not self._closed:
            return self._server
        async with self._starting:
            self._refuse_if_closed()
            if self._server is not None and not self._server.alive:
                self._forget()
            if self._server is None:
                self._server = await self._started()
            return self._server

    async def _started(self) -> Server:
        server = Server(asyncio.get_running_loop())
        try:
            await server.load(self._preload)
            self._refuse_if_closed()
        except BaseException:
            server.abandon()
            raise
        return server

    def _settle(self) -> None:
        """Bind the pool to the running event loop; release workers of a closed loop."""
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise RuntimeError("a worker pool belongs to one event loop; create one for each")
        self._forget()
        self._loop = loop
        self._slots = FairSlots(self._size)
        self._starting = asyncio.Lock()

    def _forget(self) -> None:
        for worker in list(self._all):
            self._retire(worker)
        server, self._server = self._server, None
        if server is not None:
            server.abandon()

    def _module_of(self, function: str) -> str:
        match = _NAME.fullmatch(function)
        module = match[1] if match else ""
        if not module.startswith("argosy.") and module not in self._preload:
            raise RefusedError(f"{function}: not a function of argosy or of a module that the pool preloads")
        return module


def _needs(limits: Limits) -> Needs:
    return Needs(limits.memory, limits.cpu, limits.output)
