"""Data folder of a sandbox: its files, its lock, and how to reach the sandbox while it runs.

Never: two owners of one folder; a file with a secret that others may read.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from argosy.errors import TransientError, UserError
from argosy.kube.client.private_file_writer import write_private
from argosy.kube.well_known_kinds import CLI_API_VERSION

DEFAULT_NAME = "sandbox"
DEMO_NAME = "demo"
CURRENT_FILE = "current.json"
STOP_SECONDS = 10.0
# All files that a sandbox creates in its folder. The lock is kept: its owner may be removing the rest.
OWN_NAMES = frozenset(["run.json", "kubeconfig", "tls", "secret.key", "logs", "bin"])
OWN_NAMES |= {"repositories", "mirrors", "volumes", "runs", "notebooks", "page"}
OWN_DATABASE = "argosy.db"


def get_state_folder() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "argosy"


@dataclass(frozen=True)
class RunningInstance:
    """The instance that runs in a folder, as stored in run.json."""

    pid: int
    api: str
    kubeconfig: str
    data_dir: str
    ephemeral: bool = False
    rbac: bool = False
    context: str = ""  # if the kubeconfig has other contexts too
    name: str = DEFAULT_NAME  # sandbox or demo
    repository: str = ""  # Git repository that users push to, if any
    addons: str = ""  # as given on the command line
    url: str = ""  # of the web page, if any


class DataFolder:
    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or get_state_folder() / DEFAULT_NAME).expanduser().absolute()
        self.lock = self.root / "lock"
        self.run_file = self.root / "run.json"
        self.kubeconfig = self.root / "kubeconfig"
        self.tls = self.root / "tls"
        self.secret_key = self.root / "secret.key"
        self.admin_token = self.root / "tls" / "admin.token"
        self.token_key = self.root / "tls" / "service-accounts.key"
        self.database = self.root / "argosy.db"

    @contextlib.contextmanager
    def lock_for_this_process(self) -> Iterator[None]:
        """Lock the folder for this process; a second owner is refused at once."""
        if foreign := self._find_foreign_file():
            message = f"contains files that are not a sandbox's ({foreign}); choose an empty folder with --data-dir"
            raise UserError(message, where=str(self.root))
        handle = self._lock_folder()
        try:
            self.mark_run_ended()  # a killed run left its pid, which may belong to another program by now
            yield
        finally:
            self.mark_run_ended()
            os.close(handle)

    def _lock_folder(self) -> int:
        """Create and lock the folder. A lock file that `remove_if_empty` deleted meanwhile locks nothing."""
        while True:
            try:
                self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
                handle = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                message = f"cannot be used as a data folder ({error.strerror}); choose another with --data-dir"
                raise UserError(message, where=str(self.root)) from error
            if not _try_lock(handle):
                os.close(handle)
                raise self._build_in_use_error()
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(handle), os.stat(self.lock)):
                    return handle
            os.close(handle)

    def remove_if_empty(self, *, was_stopped: bool = False) -> None:
        """Remove the folder's contents if they are only the lock and empty folders of a sandbox.

        Outside the state folder this requires a stopped sandbox, and keeps the folder itself: the user named it.
        """
        is_ours = get_state_folder().resolve() in self.root.resolve().parents
        if not (was_stopped or is_ours) or not self._is_empty():
            return
        with contextlib.suppress(OSError, UserError), self.lock_for_this_process():
            if not self._is_empty():
                return
            for folder, _, _ in os.walk(self.root, topdown=False):
                if folder != str(self.root):
                    os.rmdir(folder)
            self.lock.unlink()
            if is_ours:
                self.root.rmdir()
            if is_ours and self.root.parent == get_state_folder():
                get_state_folder().rmdir()  # fails if it is not empty

    def _is_empty(self) -> bool:
        """True if the folder contains only the lock, which is an empty file, and empty folders of a sandbox."""
        try:
            lock = self.lock.lstat()
            names = [name for name in os.listdir(self.root) if name != self.lock.name]
        except OSError:
            return False
        if not stat.S_ISREG(lock.st_mode) or lock.st_size or not all(map(_is_sandbox_file, names)):
            return False
        return all(_contains_only_folders(self.root / name) for name in names)

    def _build_in_use_error(self) -> UserError:
        run = self.find_running_instance()
        name = run.name if run else "sandbox"
        owner = f" by a {name} (pid {run.pid}, {run.api})" if run else " by another argosy process"
        advice = f"stop it with: argosy {name} stop --data-dir {self.root}, or choose another --data-dir"
        return UserError(f"this data folder is in use{owner}; {advice}", where=str(self.root))

    def is_locked(self) -> bool:
        try:
            with self.lock.open() as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    # -- running instance ----------------------------------------------------------------------------------------

    def write_run(self, run: RunningInstance) -> None:
        write_private_text(self.run_file, json.dumps(asdict(run)))
        _write_running_instances([run, *(other for other in _list_recorded_runs() if other.data_dir != run.data_dir)])

    def mark_run_ended(self) -> None:
        """Mark the run as ended. Its address is kept: the next run uses the same port if possible."""
        run = self._read_run()
        if run is None or not run.pid:
            return
        with contextlib.suppress(OSError, ValueError):
            write_private_text(self.run_file, json.dumps(asdict(replace(run, pid=0))))
            _write_running_instances([other for other in _list_recorded_runs() if other.data_dir != run.data_dir])

    def find_running_instance(self) -> RunningInstance | None:
        """Return the instance that has this folder locked, if it is ready."""
        run = self._read_run()
        return run if run and run.pid and self.is_locked() else None

    def _read_run(self) -> RunningInstance | None:
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            field_names = {field.name for field in fields(RunningInstance)}
            document = json.loads(self.run_file.read_text())
            # A newer argosy may have written other fields.
            return RunningInstance(**{name: value for name, value in document.items() if name in field_names})
        return None

    def get_last_addons(self) -> str:
        """Return the add-ons of the last run; "" if there was none."""
        run = self._read_run()
        return run.addons if run else ""

    def get_last_rbac(self) -> bool:
        """True if the last run enforced RBAC: a restart must not turn it off."""
        run = self._read_run()
        return run is not None and run.rbac

    def get_last_port(self) -> int:
        """Return the port of the last run, so that copied kubeconfigs keep working."""
        run = self._read_run()
        port = run.api.rpartition(":")[2] if run else ""
        return int(port) if port.isdigit() else 0

    def stop(self) -> bool:
        """Stop the sandbox of this folder and wait for its end; False if none ran."""
        run = self.find_running_instance()
        if run is None:
            return False
        try:
            os.kill(run.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass  # it already ended
        except PermissionError as error:
            message = f"pid {run.pid} belongs to another user; ask that user to stop it, or use sudo"
            raise UserError(message, where=str(self.root)) from error
        deadline = time.monotonic() + STOP_SECONDS
        while self.is_locked():
            if time.monotonic() > deadline:
                message = f"pid {run.pid} did not stop within {STOP_SECONDS:.0f} s; run: kill -9 {run.pid}"
                raise TransientError(f"{self.root}: {message}; acknowledged writes are not lost")
            time.sleep(0.02)
        return True

    def _find_foreign_file(self) -> str:
        """Return the first foreign file, unless the folder already contains a sandbox."""
        if self.database.exists() or self.tls.exists() or not self.root.is_dir():
            return ""
        names = sorted(entry.name for entry in self.root.iterdir())
        return next((name for name in names if name != self.lock.name and not _is_sandbox_file(name)), "")

    def remove_sandbox_files(self) -> None:
        """Remove files that a sandbox created, and nothing else. The caller owns the folder."""
        for entry in self.root.iterdir():
            if not _is_sandbox_file(entry.name):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def status_to_wire(self) -> dict[str, Any]:
        """Return the status document of `-o json`."""
        run = self.find_running_instance()
        return {
            "apiVersion": CLI_API_VERSION,
            "kind": "Status",
            "ready": run is not None,
            "pid": run.pid if run else None,
            "url": (run.url or None) if run else None,
            "api": run.api if run else None,
            "kubeconfig": run.kubeconfig if run else None,
            "repository": (run.repository or None) if run else None,
            "dataDir": str(self.root),
            "rbac": run.rbac if run else None,
        }


def _is_sandbox_file(name: str) -> bool:
    return name in OWN_NAMES or name.startswith(OWN_DATABASE)


def _contains_only_folders(path: Path) -> bool:
    if path.is_symlink() or not path.is_dir():
        return False
    return not any(
        files or any(Path(folder, name).is_symlink() for name in names) for folder, names, files in os.walk(path)
    )


def list_running_folders() -> list[DataFolder]:
    """List folders of running instances: the default sandbox, then the others, latest first."""
    paths = [get_state_folder() / DEFAULT_NAME, *_list_recorded_paths(), get_state_folder() / DEMO_NAME]
    folders = [DataFolder(path) for path in dict.fromkeys(paths)]
    return [folder for folder in folders if folder.find_running_instance()]


def _list_recorded_paths() -> list[Path]:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        document = json.loads((get_state_folder() / CURRENT_FILE).read_text())
        return [Path(document["data_dir"]), *map(Path, document.get("others", ()))]
    return []


def _list_recorded_runs() -> list[RunningInstance]:
    return [run for path in _list_recorded_paths() if (run := DataFolder(path).find_running_instance())]


def _write_running_instances(runs: list[RunningInstance]) -> None:
    """Write the list of running instances. Commands use the first; when it ends, the next."""
    file = get_state_folder() / CURRENT_FILE
    if not runs:
        file.unlink(missing_ok=True)
        return
    others = [run.data_dir for run in runs[1:]]
    write_private_text(file, json.dumps({**asdict(runs[0]), "others": others}))


def _try_lock(handle: int) -> bool:
    """Try for a moment: a process that only checks ownership holds a shared lock meanwhile."""
    for pause in (0.0, 0.01, 0.03, 0.06, 0.1):
        time.sleep(pause)
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


def write_private_text(file: Path, text: str) -> None:
    """Write a file atomically and privately. A symbolic link is followed."""
    file = file.resolve()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_private(file, text.encode())
