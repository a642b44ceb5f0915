"""Reports missing confinement in logs, metrics and /healthz.

In: a program that does nothing, run confined once. Out: a log line, active protections, sentences for /healthz. Never:
refuses anything (see isolation.requirement); makes a process unready or restarts it: that would fix nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import asdict
from functools import cache

from argosy.errors import ArgosyError
from argosy.isolation.confinement_requirement import (
    ADVICE,
    REQUIRED,
    find_missing_protections,
    read_mode,
    render_refusal,
)
from argosy.isolation.limit_and_confinement_types import Confinement
from argosy.isolation.untrusted_program_runner import probe_confinement

log = logging.getLogger(__name__)
probe_once = cache(probe_confinement)  # once per process: the kernel does not change


class ConfinementCheck:
    """Check of one engine or server; all checks of a process share one probe."""

    def __init__(self, run_probe: Callable[[], Confinement] = probe_once) -> None:
        self._run_probe = run_probe
        self._mode = read_mode()
        self._confinement: Confinement | None = None
        self._failure = ""

    async def run(self) -> None:
        """Probe the confinement and log the result: one warning if a required protection is missing."""
        if self._confinement is not None:
            return
        try:
            self._confinement = await asyncio.to_thread(self._run_probe)
        except (ArgosyError, OSError, RuntimeError) as error:
            self._failure = f"cannot check the confinement: {error}"
            log.warning("cannot check the confinement: mode=%s error=%s", self._mode, error)
            return
        confinement = self._confinement
        details = "; ".join((*confinement.missing, *confinement.optional_missing)) or "nothing"
        if missing := self.list_missing_protections():
            consequence = "refused" if self.is_required else "run with the available protections"
            message = "confinement is incomplete; untrusted code is %s: mode=%s lacking=%s missing=%s advice=%s"
            log.warning(message, consequence, self._mode, "; ".join(missing), details, ADVICE)
        else:
            log.info("confinement is active: mode=%s missing=%s", self._mode, details)

    def list_missing_protections(self) -> list[str]:
        """List required protections that are not active; empty if all are, or if that is not known yet."""
        return [] if self._confinement is None else find_missing_protections(asdict(self._confinement))

    def list_problems(self) -> list[str]:
        """List sentences for /healthz; empty in best-effort mode, where only log and metrics report it."""
        if not self.is_required:
            return []
        if self._failure:
            return [self._failure]
        return [render_refusal(missing)] if (missing := self.list_missing_protections()) else []

    @property
    def is_required(self) -> bool:
        return self._mode == REQUIRED

    def get_protections(self) -> dict[str, bool]:
        """Return which protections are active, by name; empty until the probe has run."""
        confinement = self._confinement
        if confinement is None:
            return {}
        return {
            "files": bool(confinement.landlock) or confinement.own_root,
            "network": confinement.network != "open",
            "unix-sockets": confinement.unix_sockets != "open",
            "system-calls": confinement.seccomp,
            "keyrings": confinement.seccomp or confinement.session_keyring,
            "namespaces": confinement.own_root,
            "cgroup": confinement.cgroup,
            "scratch-tmpfs": confinement.scratch_tmpfs,
        }
