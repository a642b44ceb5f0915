"""Reads a tar archive without unpacking it.

In: a stream of bytes. Out: its entries, or CorruptSource. Never: ends before the archive does without an error: what
follows a damaged header would be missing, and its objects would be pruned.

The reader is our own: the one of the standard library ends silently at a damaged header, takes quadratic time for some
headers, and unpacks sparse files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from argosy.errors import CorruptSource, SourceTooLarge

FILE, HARD_LINK, LINK, FOLDER = b"0", b"1", b"2", b"5"
_OLD_FILE, _CONTIGUOUS_FILE, _SPARSE_FILE = b"\0", b"7", b"S"
_PAX, _GLOBAL_PAX, _LONG_NAME, _LONG_LINK = b"x", b"g", b"L", b"K"
_KINDS_WITHOUT_CONTENT: Final = (b"1", b"2", b"3", b"4", b"5", b"6")
_BLOCK_BYTES: Final = 512
_ZEROS: Final = bytes(_BLOCK_BYTES)
_MAX_HEADER_CONTENT_BYTES: Final = 1 << 20  # of a long name; argo: Go's limit
_BROKEN: Final = "the archive is not a valid tar file, or it is damaged"
_CUT: Final = "the archive ends within a file"


class TarMember(NamedTuple):
    kind: bytes  # FILE, FOLDER, LINK, HARD_LINK or another type of tar
    path: str  # bytes that are not UTF-8 are surrogates
    content: bytes
    target: str  # of a link


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Extension(NamedTuple):
    """What extra headers say about the next member."""

    path: str = ""
    target: str = ""
    size: int = -1


def read_members(stream: _Stream, max_bytes: int) -> Iterator[TarMember]:
    """Yield the members of an archive. A file of more than `max_bytes` raises SourceTooLarge.

    argo: as for Go, two blocks of zeros, or the end of the stream after a member, end the archive. Any other block must
    be a header with the right checksum.
    """
    extension = _Extension()
    while (header := _read_header(stream)) is not None:
        kind = header[156:157]
        is_extension = kind in (_PAX, _GLOBAL_PAX, _LONG_NAME, _LONG_LINK)
        size = _read_number(header[124:136])
        if not is_extension:
            size = extension.size if extension.size >= 0 else size
            size = 0 if kind in _KINDS_WITHOUT_CONTENT else size
        if size > max_bytes:
            raise SourceTooLarge(f"the archive unpacks to more than {max_bytes} bytes")
        if is_extension and size > _MAX_HEADER_CONTENT_BYTES:
            raise SourceTooLarge(f"the archive has a name of more than {_MAX_HEADER_CONTENT_BYTES} bytes")
        content = _read_content(stream, size)
        if is_extension:
            extension = _extend(extension, kind, content)
            continue
        if kind == _SPARSE_FILE:
            raise CorruptSource("the archive has a sparse file; pack it without --sparse")
        path = extension.path or _read_path(header)
        target = extension.target or _decode(header[157:257].partition(b"\0")[0])
        if kind == _OLD_FILE:
            kind = FOLDER if path.endswith("/") else FILE
        yield TarMember(FILE if kind == _CONTIGUOUS_FILE else kind, path, content, target)
        extension = _Extension()


def _read_header(stream: _Stream) -> bytes | None:
    """Return the next header; None at the end of the archive."""
    header = stream.read(_BLOCK_BYTES)
    if not header:
        return None
    if len(header) < _BLOCK_BYTES:
        raise CorruptSource(_CUT)
    if header == _ZEROS:
        if stream.read(_BLOCK_BYTES) in (_ZEROS, b""):
            return None
        raise CorruptSource(_BROKEN)
    expected = _read_number(header[148:156])
    others = header[:148] + b" " * 8 + header[156:]
    if expected != sum(others) and expected != sum(byte - 256 if byte > 127 else byte for byte in others):
        raise CorruptSource(_BROKEN)
    return header


def _read_content(stream: _Stream, size: int) -> bytes:
    content = stream.read(size) if size else b""
    if len(content) < size:
        raise CorruptSource(_CUT)
    stream.read(-size % _BLOCK_BYTES)  # argo: Go accepts an archive that ends within this
    return content


def _extend(extension: _Extension, kind: bytes, content: bytes) -> _Extension:
    if kind == _LONG_NAME:
        return extension._replace(path=_decode(content.partition(b"\0")[0]))
    if kind == _LONG_LINK:
        return extension._replace(target=_decode(content.partition(b"\0")[0]))
    records = _read_pax_records(content)
    if kind == _GLOBAL_PAX:  # argo: Go ignores them
        return extension
    if any(key.startswith(b"GNU.sparse.") for key in records):
        raise CorruptSource("the archive has a sparse file; pack it without --sparse")
    size = records.get(b"size", b"")
    if size and not (size.isdigit() and len(size) < 16):
        raise CorruptSource(_BROKEN)
    return _Extension(
        _decode(records.get(b"path", b"")) or extension.path,
        _decode(records.get(b"linkpath", b"")) or extension.target,
        int(size) if size else extension.size,
    )


def _read_pax_records(content: bytes) -> dict[bytes, bytes]:
    """Read records such as `30 path=some/long/path\\n`; the number is the length of the record."""
    records: dict[bytes, bytes] = {}
    position = 0
    while position < len(content):
        end = content.find(b" ", position, position + 10)
        digits = content[position:end] if end > 0 else b""
        if not digits.isdigit() or not (length := int(digits)) > len(digits) + 1:
            raise CorruptSource(_BROKEN)
        key, separator, value = content[end + 1 : position + length].partition(b"=")
        if not separator or position + length > len(content) or not value.endswith(b"\n"):
            raise CorruptSource(_BROKEN)
        records[key] = value[:-1]
        position += length
    return records


def _read_number(field: bytes) -> int:
    """Read an octal number, or a binary one if the first bit is set."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:])
    digits = field.strip(b" \0")
    if not all(0x30 <= byte <= 0x37 for byte in digits):
        raise CorruptSource(_BROKEN)
    return int(digits or b"0", 8)


def _read_path(header: bytes) -> str:
    name = _decode(header[:100].partition(b"\0")[0])
    prefix = _decode(header[345:500].partition(b"\0")[0]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
