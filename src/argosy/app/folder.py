"""A data folder: where everything of one sandbox is, who has it open, and how to reach it while it runs.

Never: two owners of one folder; a file with a secret that others may read.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from argosy.model.errors import TransientError, UserError

DEFAULT_NAME = "sandbox"
STOP_SECONDS = 10.0
KEPT_BY_RESET = {"lock"}


def state_home() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "argosy"


@dataclass(frozen=True)
class Run:
    """A running sandbox, as its folder tells of it."""

    pid: int
    api: str
    kubeconfig: str
    data_dir: str
    ephemeral: bool = False


class DataFolder:
    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or state_home() / DEFAULT_NAME).expanduser().absolute()
        self.lock = self.root / "lock"
        self.run_file = self.root / "run.json"
        self.kubeconfig = self.root / "kubeconfig"
        self.tls = self.root / "tls"
        self.secret_key = self.root / "secret.key"
        self.admin_token = self.root / "tls" / "admin.token"
        self.token_key = self.root / "tls" / "service-accounts.key"
        self.database = self.root / "argosy.db"

    @contextlib.contextmanager
    def owned(self) -> Iterator[None]:
        """Holds the folder for this process; a second owner is refused at once."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            message = f"cannot be used as a data folder ({error.strerror}); choose another with --data-dir"
            raise UserError(message, where=str(self.root)) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise self._in_use() from None
        try:
            yield
        finally:
            os.close(handle)

    def _in_use(self) -> UserError:
        run = self._read_run()
        who = f" by a sandbox (pid {run.pid}, {run.api})" if run else " by another argosy process"
        advice = f"stop it with: argosy sandbox stop --data-dir {self.root}, or choose another --data-dir"
        return UserError(f"this data folder is in use{who}; {advice}", where=str(self.root))

    def is_owned(self) -> bool:
        try:
            with self.lock.open() as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    # -- what runs -----------------------------------------------------------------------------------------------

    def write_run(self, run: Run) -> None:
        write_private(self.run_file, json.dumps(asdict(run)))
        write_private(state_home() / "current.json", json.dumps(asdict(run)))

    def forget_run(self) -> None:
        self.run_file.unlink(missing_ok=True)
        current = state_home() / "current.json"
        with contextlib.suppress(OSError, ValueError):
            if json.loads(current.read_text()).get("pid") == os.getpid():
                current.unlink(missing_ok=True)

    def running(self) -> Run | None:
        """The sandbox that has this folder open now, if it is ready."""
        run = self._read_run()
        return run if run and self.is_owned() else None

    def _read_run(self) -> Run | None:
        with contextlib.suppress(OSError, ValueError, TypeError):
            return Run(**json.loads(self.run_file.read_text()))
        return None

    def last_port(self) -> int:
        """The port of the last run, so that a kubeconfig which somebody copied goes on working."""
        run = self._read_run()
        port = run.api.rpartition(":")[2] if run else ""
        return int(port) if port.isdigit() else 0

    def stop(self) -> bool:
        """Ends the sandbox here and waits until it has; False if none ran."""
        run = self._read_run()
        if run is None or not self.is_owned():
            return False
        os.kill(run.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while self.is_owned():
            if time.monotonic() > deadline:
                message = f"pid {run.pid} has not ended after {STOP_SECONDS:.0f} s; look at it, or kill -9 {run.pid}"
                raise TransientError(f"{self.root}: {message}; nothing acknowledged is lost")
            time.sleep(0.02)
        return True

    def clear(self) -> None:
        """Removes everything in the folder. The caller owns it."""
        for entry in self.root.iterdir():
            if entry.name in KEPT_BY_RESET:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def status(self) -> dict[str, Any]:
        """The shape that `-o json` promises."""
        run = self.running()
        return {
            "apiVersion": "cli.argosy.dev/v1",
            "kind": "Status",
            "ready": run is not None,
            "pid": run.pid if run else None,
            "url": None,
            "api": run.api if run else None,
            "kubeconfig": run.kubeconfig if run else None,
            "repository": None,
            "dataDir": str(self.root),
        }


def write_private(file: Path, text: str) -> None:
    """Whole or not at all, and for the owner's eyes only."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as out:
        out.write(text)
    part.replace(file)
