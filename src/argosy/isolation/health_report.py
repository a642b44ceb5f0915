"""Health sign for confinement: what this machine cannot confine, in logs, metrics and /healthz.

In: a program that does nothing, run confined once. Out: a log line, which protections hold, sentences for /healthz.
Never: refuses anything (see confine.requirement); makes a process unready, or restarts it: that would mend nothing.
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
probe_once = cache(probe)  # for each process: its kernel does not change


class ConfinementCheck:
    """Of one engine or server; all those of a process share one probe."""

    def __init__(self, run_probe: Callable[[], Confinement] = probe_once) -> None:
        self._run_probe = run_probe
        self._mode = read_mode()
        self._confinement: Confinement | None = None
        self._failure = ""

    async def run(self) -> None:
        """Find out what is in force, and log it: one warning if something required is lacking."""
        if self._confinement is not None:
            return
        try:
            self._confinement = await asyncio.to_thread(self._run_probe)
        except (ArgosyError, OSError, RuntimeError) as error:
            self._failure = f"confinement could not be checked: {error}"
            log.warning("confinement could not be checked: mode=%s error=%s", self._mode, error)
            return
        confinement = self._confinement
        details = "; ".join((*confinement.missing, *confinement.optional_missing)) or "nothing"
        if lacking := self.lacking():
            what = "refused" if self.is_required else "run with the protections that are there"
            words = "confinement is incomplete, untrusted code is %s: mode=%s lacking=%s missing=%s advice=%s"
            log.warning(words, what, self._mode, "; ".join(lacking), details, ADVICE)
        else:
            log.info("confinement is in force: mode=%s missing=%s", self._mode, details)

    def lacking(self) -> list[str]:
        """Required protections that are not in force; empty if all are, or if that is not known yet."""
        return [] if self._confinement is None else find_lacking(asdict(self._confinement))

    def troubles(self) -> list[str]:
        """Sentences for /healthz. Whoever chose best-effort knows: then the log and the metrics say it."""
        if not self.is_required:
            return []
        if self._failure:
            return [self._failure]
        return [render_refusal(lacking)] if (lacking := self.lacking()) else []

    @property
    def is_required(self) -> bool:
        return self._mode == REQUIRED

    def protections(self) -> dict[str, bool]:
        """Which protections are in force, by name; empty until that is known."""
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
