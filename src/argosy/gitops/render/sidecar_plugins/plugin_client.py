"""Calls Argo CD's plug-in server, `argocd-cmp-server`, through its socket.

In: a socket, an archive with its metadata. Out: what the plug-in answers. Never: sends files that the caller did not
pack; trusts the size or the time of an answer.

The messages are those of Argo CD v3.5.6: cmpserver/plugin/plugin.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import LimitError, ManifestError, RenderError, TransientError
from argosy.gitops.render.output_control_character_filter import last_lines
from argosy.gitops.render.sidecar_plugins.source_archive import SourceArchive
from argosy.grpc_client.unix_socket_call import AnswerLimits, CallCode, FailedCall, call_method
from argosy.isolation.errors import TIMED_OUT
from argosy.kube.schema.builtin_go_struct_fields import TypeTable
from argosy.kube.schema.protobuf_reader import MessageReader
from argosy.kube.schema.protobuf_wire_format import encode_bytes_field, encode_number_field

MAX_ANSWER_BYTES: Final = 64 << 20
_MAX_MESSAGE_LINES: Final = 20
_CHUNK_BYTES: Final = 64 << 10
_SERVICE: Final = "/plugin.ConfigManagementPluginService/"
_ANSWERS: Final = {
    "plugin.CheckPluginConfigurationResponse": "\nisDiscoveryConfigured bool 1 o\nprovideGitCreds bool 2 o",
    "plugin.RepositoryResponse": "\nisSupported bool 1 o\nisDiscoveryEnabled bool 2 o",
    "plugin.ManifestResponse": "\nmanifests []string 1 o\nsourceType string 2 o",
}
_TYPES: Final = TypeTable(lambda: _ANSWERS)


@dataclass(frozen=True)
class ArchiveRequest:
    """A source for a plug-in. `folder`: the source's path in the archive."""

    archive: SourceArchive
    folder: str
    environment: Mapping[str, str]

    def encode_messages(self) -> Iterator[bytes]:
        yield encode_bytes_field(1, self._encode_metadata())
        with open(self.archive.file, "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield encode_bytes_field(2, encode_bytes_field(1, chunk))

    def _encode_metadata(self) -> bytes:
        # argo: the field appName is the name of the folder
        texts = [(1, self.folder.rpartition("/")[2] or "."), (2, self.folder or "."), (3, self.archive.checksum)]
        entries = [_encode_text(1, name) + _encode_text(2, value) for name, value in self.environment.items()]
        return b"".join(
            (
                *(_encode_text(number, text) for number, text in texts),
                encode_number_field(4, self.archive.size),
                *(encode_bytes_field(5, entry) for entry in entries),
            )
        )


def _encode_text(number: int, text: str) -> bytes:
    return encode_bytes_field(number, text.encode("utf-8", "replace")) if text else b""


@dataclass(frozen=True)
class SidecarPlugin:
    """One plug-in server. Raises RenderError with its message, or TransientError if it does not answer."""

    name: str
    socket_path: str
    deadline: float  # of time.monotonic

    def fetch_configuration(self) -> dict[str, Any]:
        return self._call("CheckPluginConfiguration", iter((b"",)), "CheckPluginConfigurationResponse")

    def match_repository(self, request: ArchiveRequest) -> dict[str, Any]:
        return self._call("MatchRepository", request.encode_messages(), "RepositoryResponse", request.folder)

    def generate_manifests(self, request: ArchiveRequest) -> list[str]:
        answer = self._call("GenerateManifest", request.encode_messages(), "ManifestResponse", request.folder)
        return list(answer.get("manifests") or ())

    def _call(self, method: str, messages: Iterator[bytes], answer_type: str, folder: str = "") -> dict[str, Any]:
        limits = AnswerLimits(self.deadline, MAX_ANSWER_BYTES)
        try:
            answer = call_method(self.socket_path, _SERVICE + method, messages, limits)
            return MessageReader().read_message(_TYPES.get_type(f"plugin.{answer_type}"), answer, 0)
        except FailedCall as error:
            raise self._build_error(error, folder) from None
        except ManifestError as error:
            message = f"plug-in {self.name} sent an invalid answer: {error.message}"
            raise RenderError(message, where=folder or ".") from None

    def _build_error(self, error: FailedCall, folder: str) -> RenderError | LimitError | TransientError:
        where = folder or "."
        if error.code == CallCode.DEADLINE_EXCEEDED:
            timeout = LimitError(f"plug-in {self.name} takes too long; make it faster", where=where)
            timeout.exhaustion_reason = TIMED_OUT
            return timeout
        text = " | ".join(last_lines(error.message, _MAX_MESSAGE_LINES).splitlines()) or "no message"
        if error.code == CallCode.UNAVAILABLE:
            return TransientError(f"plug-in {self.name} does not answer: {text}; check its container")
        return RenderError(f"plug-in {self.name} failed: {text}", where=where)
