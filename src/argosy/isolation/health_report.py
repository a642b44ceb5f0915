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
from argosy.isolation.limits import Confinement
from argosy.isolation.program import probe
from argosy.isolation.requirement import ADVICE, REQUIRED, find_lacking, read_mode, render_refusal

log = logging.getLogger(__name__)
probe_once = cache(probe)  # once per process: the kernel does not change


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
        if lacking := self.lacking():
            what = "refused" if self.is_required else "run with the available protections"
            words = "confinement is incomplete; untrusted code is %s: mode=%s lacking=%s missing=%s advice=%s"
            log.warning(words, what, self._mode, "; ".join(lacking), details, ADVICE)
        else:
            log.info("confinement is active: mode=%s missing=%s", self._mode, details)

    def lacking(self) -> list[str]:
        """List required protections that are not active; empty if all are, or if that is not known yet."""
        return [] if self._confinement is None else find_lacking(asdict(self._confinement))

    def troubles(self) -> list[str]:
        """List sentences for /healthz; empty in best-effort mode, where only log and metrics report it."""
        if not self.is_required:
            return []
        if self._failure:
            return [self._failure]
        return [render_refusal(lacking)] if (lacking := self.lacking()) else []

    @property
    def is_required(self) -> bool:
        return self._mode == REQUIRED

    def protections(self) -> dict[str, bool]:
        """Return which protections are active, by name; empty until the probe has run."""
        found = self._confinement
        if found is None:
            return {}
        return {
            "files": bool(found.landlock) or found.own_root,
            "network": found.network != "open",
            "unix-sockets": found.unix_sockets != "open",
            "system-calls": found.seccomp,
            "keyrings": found.seccomp or found.session_keyring,
            "namespaces": found.own_root,
            "cgroup": found.cgroup,
            "scratch-tmpfs": found.scratch_tmpfs,
        }
