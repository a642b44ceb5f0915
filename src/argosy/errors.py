"""Our errors, by who must act.

ArgosyError
├── UserError          the author of the input: a condition on the object, HTTP 400, exit code 2
│   ├── ManifestError  LimitError  PatchError  RenderError
│   ├── SourceError    Unreachable  SourceTimeout  SourceRefused  UnknownRef  CorruptSource  SourceTooLarge
│   │   └── NotVerified  Unsigned  BadSignature  UnknownSigner  ExpiredSigner  SignerNotAllowed  CannotVerify
│   └── PolicyError    refused by a rule: exit code 5
├── ClusterError       the cluster said no: carries code, reason and key
│   ├── Conflict 409   Gone 410   Invalid 422   Forbidden 403
└── TransientError     nobody: retried with backoff, HTTP 503, exit code 3
    └── StorageFull    whoever runs the sandbox: its disk is full, HTTP 507
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.kube.names import ResourceKey


class ArgosyError(Exception):
    """The root of all errors that argosy raises on purpose. They can be pickled, whatever their constructors want."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__.copy())


def _rebuilt(kind: type[ArgosyError], args: tuple[Any, ...], state: Mapping[str, Any]) -> ArgosyError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class UserError(ArgosyError):
    """The input is wrong; `where` says which file, field or object, and `line` where in it, from 1 on (0: unknown)."""

    source = ""  # the ref and path of the Application's source that could not be loaded

    def __init__(self, message: str, *, where: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.line = line

    def __str__(self) -> str:
        if not self.line:
            return f"{self.where}: {self.message}" if self.where else self.message
        return f"{self.where or 'line '}{':' if self.where else ''}{self.line}: {self.message}"


class ManifestError(UserError):
    """A manifest cannot be read: bad YAML or JSON, or not a Kubernetes object."""


class LimitError(UserError):
    """Input that is not trusted went over a limit of size, depth, count or time."""

    exhausted = ""  # "timed out" or "ran out of memory" where a worker was used up: such work is not tried again soon


class PatchError(UserError):
    """A patch does not fit the manifest that it is for."""


class SourceError(UserError):
    """A repository, ref or path cannot be had."""

    last_good = ""  # the revision that the same ref had when it could last be had; it can still be checked out


class Unreachable(SourceError):
    """The repository's host gives no answer, or not the one that git needs. It may pass by itself: try again later."""


class SourceTimeout(Unreachable):
    """The repository's host was too slow."""


class SourceRefused(SourceError):
    """The host wants other credentials, or a rule of ours forbids the address."""


class AddressRefused(SourceRefused):
    """A rule of ours forbids the address: no credentials would help."""


class UnknownRef(SourceError):
    """The repository is there, the branch, tag or commit is not."""


class CorruptSource(SourceError):
    """Objects of the repository are missing or damaged."""


class SourceTooLarge(SourceError):
    """The repository, or a file in it, is larger than the limits allow."""


class NotVerified(SourceError):
    """The project asks for a signature of one of its keys, and the revision has none that counts."""


class Unsigned(NotVerified):
    """There is no signature."""


class BadSignature(NotVerified):
    """There is one, and it is not for what was signed, or not of a form that is understood."""


class UnknownSigner(NotVerified):
    """The key that signed is not among the public keys of the installation."""


class ExpiredSigner(NotVerified):
    """The signature or its key has expired, or the key was revoked."""


class SignerNotAllowed(NotVerified):
    """The signature is good, and its key is not among those of the project."""


class CannotVerify(NotVerified):
    """This machine has no gpg, or it cannot be used."""


class RenderError(UserError):
    """A tree cannot be turned into manifests."""


class PolicyError(UserError):
    """A project, window or role refuses it."""


class ClusterError(ArgosyError):
    """The cluster said no. `message`, `reason` and `details` are those of the Kubernetes Status it gave."""

    default_code = 500

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        key: ResourceKey | None = None,
        reason: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.message = message
        self.code = code or self.default_code
        self.key = key
        self.reason = reason
        self.details = details
        super().__init__(message)

    @property
    def may_pass(self) -> bool:
        """The same request may be answered well in a moment."""
        return self.code >= 500 or self.code == 429

    def __str__(self) -> str:
        which = f"{self.key}: " if self.key else ""
        return f"{which}{self.message} ({self.code})"


class Conflict(ClusterError):
    """Read again, then write again. Also AlreadyExists, and server-side apply's field conflicts."""

    default_code = 409


class Gone(ClusterError):
    """The asked-for revision was compacted: list again, then watch again."""

    default_code = 410


class Invalid(ClusterError):
    """The object breaks a rule of its kind."""

    default_code = 422


class Forbidden(ClusterError):
    """This user may not, or an admission rule refuses."""

    default_code = 403


class TransientError(ArgosyError):
    """Nobody must act: the network, a timeout, a server that is starting."""

    passes = True  # False: not before somebody does act


class StorageFull(TransientError):
    """The disk that holds the objects of the embedded API server is full. It goes on by itself once there is space."""


BY_CODE: Mapping[int, type[ClusterError]] = {403: Forbidden, 409: Conflict, 410: Gone, 422: Invalid}


def cluster_error(status: Mapping[str, Any], key: ResourceKey | None = None) -> ClusterError:
    """The error that a Kubernetes Status object stands for."""
    code = int(status.get("code") or 500)
    return BY_CODE.get(code, ClusterError)(
        str(status.get("message") or "the cluster gave no reason"),
        code=code,
        key=key,
        reason=str(status.get("reason") or ""),
        details=status.get("details") or None,
    )
