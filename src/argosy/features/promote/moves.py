"""Computes the changes of a promotion: fields that move, and differences that stay.

In: the contents of two environments, and the source's contents at the last promotion. Out: PromotionChanges.
Never: moves a field that belongs to one environment only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.features.promote.releases import At, Contents, Field, Kind, Owner, steps_of
from argosy.gitops.analysis.secret_detection import masked

_SCHEMES_OF_IMAGES: Final = ("oci://", "docker://")
_SCHEMES_OF_HUBS: Final = ("hf", "huggingface")


@dataclass(frozen=True)
class Move:
    at: At
    kind: Kind
    before: Any
    after: Any
    here: Field | None  # None if the target does not have the field yet
    there: Field

    @property
    def owner(self) -> str:
        """Kind and name of the object in the target, as in the cluster."""
        return f"{self.here.key.kind}/{self.here.key.name}" if self.here else str(self.at.owner)


@dataclass(frozen=True)
class Stay:
    """A difference between source and target that a promotion keeps."""

    at: At
    source: Any
    target: Any
    why: str = ""  # set if the difference may be unintended


@dataclass(frozen=True)
class Moving:
    moves: tuple[Move, ...] = ()
    stays: tuple[Stay, ...] = ()
    missing: tuple[Owner, ...] = field(default=())  # objects that only the source has

    @property
    def doubts(self) -> list[Stay]:
        return [each for each in self.stays if each.why]


def moving(source: Contents, target: Contents, was: Contents | None = None) -> Moving:
    """Compare source and target; `promoted_contents` is the source at the last promotion, None if unknown."""
    target = match_owners(source, target)
    moves, stays = list[Move](), list[Stay]()
    for at, there in source.fields.items():
        if at.owner not in target.owners:
            continue
        here = target.fields.get(at)
        before = here.value if here else None
        if here is not None and before == there.value:
            continue
        after, why = _decided(at, there, here, was)
        if after is not None:
            moves.append(Move(at, there.kind, before, after, here, there))
        elif there.value is not None:
            stays.append(Stay(at, there.value, before, why))
    stays += [Stay(at, None, each.value) for at, each in target.fields.items() if at not in source.fields]
    missing = sorted(source.owners - target.owners)
    return Moving(tuple(sorted(moves, key=_order)), tuple(stays), tuple(missing))


def _order(move: Move) -> tuple[int, At]:
    return list(Kind).index(move.kind), move.at


def _decided(at: At, there: Field, here: Field | None, was: Contents | None) -> tuple[Any, str]:
    """Return the new value of the target's field, or None and the reason why a human should look at it."""
    if there.kind in (Kind.IMAGE, Kind.MODEL) and here is not None:
        after = _carried(str(there.value), str(here.value), there.kind)
        if after is None:
            return None, "another image" if there.kind is Kind.IMAGE else "another kind of place"
        return (after, "") if after != here.value else (None, "")
    if there.kind in (Kind.IMAGE, Kind.MODEL):
        return None, "not there"
    if there.kind is not Kind.PARAMETER or was is None:
        return None, ""
    known = was.fields.get(at)
    old = known.value if known else None
    if old == there.value:
        return None, ""  # it already differed at the last promotion, so the difference is intended
    now = here.value if here else None
    return (there.value, "") if now == old else (None, "changed in both")


def _carried(source: str, target: str, kind: Kind) -> str | None:
    """Put the source's version on the target's address, because environments may use different registries or buckets.

    None if the two addresses are not versions of the same artifact.
    """
    if kind is Kind.IMAGE or source.startswith(_SCHEMES_OF_IMAGES):
        (name, version), (own, _) = parted(source), parted(target)
        return own + version if _last(name) == _last(own) else None
    scheme, _, rest = source.partition("://")
    own_scheme, has_scheme, own_rest = target.partition("://")
    if not has_scheme or not rest:
        return source
    if scheme != own_scheme:
        return None
    if scheme in _SCHEMES_OF_HUBS:
        return source  # the first path segment is part of the model's name
    place, slash, path = rest.partition("/")
    return f"{scheme}://{own_rest.partition('/')[0]}{slash}{path}" if place else source


def parted(image: str) -> tuple[str, str]:
    """Split an image into `host:5000/a/b` and its version: `:tag`, `@digest` or both."""
    name, at, digest = image.partition("@")
    slash = name.rfind("/")
    colon = name.find(":", slash + 1)
    tag = name[colon:] if colon >= 0 else ""
    return name.removesuffix(tag) if tag else name, tag + at + digest


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def match_owners(source: Contents, target: Contents) -> Contents:
    """Treat the only object of a kind on each side as the same object, even if the names differ."""
    renamed = {}
    for owner in target.owners - source.owners:
        partners, rivals = ([each for each in side.owners if each[:2] == owner[:2]] for side in (source, target))
        if len(partners) == 1 and len(rivals) == 1:
            renamed[owner] = partners[0]
    if not renamed:
        return target
    return Contents({At(renamed.get(at.owner, at.owner), at.path): each for at, each in target.fields.items()})


def name_of(at: At) -> str:
    """Return the last name of a field path; for an environment variable its name."""
    steps = steps_of(at.path)
    if not steps:
        return at.path
    is_value = len(steps) > 1 and steps[-1].name == "value"
    return (steps[-2].element if is_value else None) or steps[-1].name


def shown(at: At, value: Any) -> Any:
    """Mask values that look like secrets, for plans and commit messages."""
    return masked(name_of(at), value)


def told(stays: tuple[Stay, ...]) -> Iterator[tuple[str, str]]:
    """Yield a short label and the target's value of each kept difference, without names and annotations."""
    for stay in stays:
        path = stay.at.path
        last = path.rpartition(".")[2]
        if path == "metadata.namespace":
            yield "namespace", str(stay.target)
        elif "Replicas" in last or last == "replicas":
            yield last, str(stay.target)
        elif ".limits." in path or ".requests." in path:
            yield f"{last} {path.rpartition('.')[0].rpartition('.')[2]}", str(stay.target)
        elif last in ("host", "hostname", "hosts", "url") or last == "namespace":
            yield last, str(stay.target)
        elif not path.startswith("metadata.") and stay.target is not None:
            yield name_of(stay.at), _short(shown(stay.at, stay.target), shown(stay.at, stay.source))


def _short(value: Any, other: Any) -> str:
    """Shorten to 40 characters; of a list, keep only the items that the other side lacks."""
    if isinstance(value, list):
        own = [each for each in value if not isinstance(other, list) or each not in other]
        value = " ".join(map(str, own or value))
    text = str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
