"""The tree of argosy's exceptions, ordered by who must act.

ArgosyError
├── UserError          the author of the input must act: a condition on the object, HTTP 400, exit code 2
│   ├── ManifestError  LimitError  PatchError
│   ├── RenderError    NoMatchingFile
│   ├── SourceError    SourceUnreachable  SourceTimeout  SourceRefused  UnknownRef  CorruptSource  SourceTooLarge
│   │   │              UnnamedSubmodule
│   │   └── SignatureError  Unsigned  BadSignature  UnknownSigner  ExpiredSigner  SignerNotAllowed  CannotVerify
│   └── PolicyError    a project, sync window or role refuses: exit code 5
├── ClusterError       the API server refused the request: carries code, reason and key
│   ├── Conflict 409   Gone 410   Invalid 422   Forbidden 403
└── TransientError     nobody must act: retried with backoff, HTTP 503, exit code 3
    └── StorageFull    the operator of the sandbox must free disk space: HTTP 507
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.kube.resource_key import ResourceKey


class ArgosyError(Exception):
    """Root of all exceptions that argosy raises on purpose. They can be pickled whatever their constructors require."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_error, (type(self), self.args, self.__dict__.copy())


def _rebuild_error(error_class: type[ArgosyError], args: tuple[Any, ...], state: Mapping[str, Any]) -> ArgosyError:
    error = error_class.__new__(error_class, *args)
    error.__dict__.update(state)
    return error


class UserError(ArgosyError):
    """The input is wrong. `where` names the file, field or object; `line` counts from 1 (0: unknown)."""

    source = ""  # ref and path of the Application source that could not be loaded

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
    """Untrusted input exceeded a limit on size, depth, count or time."""

    exhaustion_reason = (
        ""  # "timed out" or "ran out of memory" if a worker process died: the work is retried after a backoff
    )


class PatchError(UserError):
    """A patch cannot be applied to its manifest."""


class SourceError(UserError):
    """A repository, ref or path cannot be fetched."""


class SourceUnreachable(SourceError):
    """The repository's host does not answer, or not with the Git protocol. Retrying later may succeed."""


class SourceTimeout(SourceUnreachable):
    """The repository's host did not answer in time."""


class SourceRefused(SourceError):
    """The host rejected the credentials, or argosy forbids the address."""


class AddressRefused(SourceRefused):
    """argosy forbids the address; other credentials do not help."""


class UnknownRef(SourceError):
    """The repository exists, but the branch, tag or commit does not."""


class CorruptSource(SourceError):
    """Objects of the repository are missing or damaged."""


class UnnamedSubmodule(SourceError):
    """A commit has a submodule for which .gitmodules has no path and URL."""


class SourceTooLarge(SourceError):
    """The repository, or a file in it, exceeds the size limit."""


class SignatureError(SourceError):
    """The project requires a signature by one of its keys, and the revision has no valid one."""

    rejected_revision = ""  # the commit that was resolved; it can be compared, but must not be applied


class Unsigned(SignatureError):
    """The revision has no signature."""


class BadSignature(SignatureError):
    """The signature does not match the signed content, or its format is not supported."""


class UnknownSigner(SignatureError):
    """The signing key is not in the installation's public keys (`argocd-gpg-keys-cm`)."""


class ExpiredSigner(SignatureError):
    """The signature or its key has expired, or the key was revoked."""


class SignerNotAllowed(SignatureError):
    """The signature is valid, but the project does not allow its key."""


class CannotVerify(SignatureError):
    """gpg is not installed on this machine, or does not work."""


class RenderError(UserError):
    """A file tree cannot be rendered into manifests."""


class NoMatchingFile(RenderError):
    """A glob of the Application's source matches no file now; a later commit may add one."""


class PolicyError(UserError):
    """An AppProject, sync window or role refuses the request."""


class ClusterError(ArgosyError):
    """The API server refused a request. `message`, `reason` and `details` come from its Kubernetes Status."""

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
    def is_retryable(self) -> bool:
        """True if the same request may succeed a moment later."""
        return self.code >= 500 or self.code == 429

    def __str__(self) -> str:
        prefix = f"{self.key}: " if self.key else ""
        return f"{prefix}{self.message} ({self.code})"


class Conflict(ClusterError):
    """The object changed: read it again, then write again. Also AlreadyExists and server-side apply field conflicts."""

    default_code = 409


class Gone(ClusterError):
    """The requested resourceVersion was compacted: list again, then watch again."""

    default_code = 410


class Invalid(ClusterError):
    """The object fails the validation of its kind."""

    default_code = 422


class Forbidden(ClusterError):
    """RBAC or an admission rule refuses the request."""

    default_code = 403


class TransientError(ArgosyError):
    """A failure that a retry may resolve: the network, a timeout, a server that is starting."""

    clears_by_itself = True  # False: retries fail until a person acts


class StorageFull(TransientError):
    """The disk of the embedded API server is full. Writes succeed again once there is space."""


ERROR_CLASS_BY_CODE: Mapping[int, type[ClusterError]] = {403: Forbidden, 409: Conflict, 410: Gone, 422: Invalid}


def cluster_error_from_status(status: Mapping[str, Any], key: ResourceKey | None = None) -> ClusterError:
    """Convert a Kubernetes Status object into an exception."""
    code = int(status.get("code") or 500)
    return ERROR_CLASS_BY_CODE.get(code, ClusterError)(
        str(status.get("message") or "the cluster gave no reason"),
        code=code,
        key=key,
        reason=str(status.get("reason") or ""),
        details=status.get("details") or None,
    )
