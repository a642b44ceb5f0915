"""Computes the changes of a promotion: fields that move, and differences that stay.

In: the contents of two environments, and the source's contents at the last promotion. Out: PromotionChanges.
Never: moves a field that belongs to one environment only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.features.promote.classified_manifest_fields import (
    ContentField,
    EnvironmentContents,
    FieldAddress,
    FieldKind,
    ObjectIdentity,
    parse_field_path,
)
from argosy.gitops.analysis.secret_name_and_token_patterns import mask_value

_IMAGE_SCHEMES: Final = ("oci://", "docker://")
_HUB_SCHEMES: Final = ("hf", "huggingface")


@dataclass(frozen=True)
class FieldMove:
    address: FieldAddress
    kind: FieldKind
    before: Any
    after: Any
    target_field: ContentField | None  # None if the target does not have the field yet
    source_field: ContentField

    @property
    def owner(self) -> str:
        """Kind and name of the object in the target, as in the cluster."""
        return (
            f"{self.target_field.key.kind}/{self.target_field.key.name}"
            if self.target_field
            else str(self.address.owner)
        )


@dataclass(frozen=True)
class KeptDifference:
    """A difference between source and target that a promotion keeps."""

    address: FieldAddress
    source: Any
    target: Any
    reason: str = ""  # set if the difference may be unintended


@dataclass(frozen=True)
class PromotionChanges:
    moves: tuple[FieldMove, ...] = ()
    stays: tuple[KeptDifference, ...] = ()
    missing: tuple[ObjectIdentity, ...] = field(default=())  # objects that only the source has

    @property
    def doubtful(self) -> list[KeptDifference]:
        return [kept for kept in self.stays if kept.reason]


def compute_changes(
    source: EnvironmentContents, target: EnvironmentContents, promoted_contents: EnvironmentContents | None = None
) -> PromotionChanges:
    """Compare source and target; `promoted_contents` is the source at the last promotion, None if unknown."""
    target = rename_matching_owners(source, target)
    moves, stays = list[FieldMove](), list[KeptDifference]()
    for address, source_field in source.fields.items():
        if address.owner not in target.owners:
            continue
        target_field = target.fields.get(address)
        before = target_field.value if target_field else None
        if target_field is not None and before == source_field.value:
            continue
        after, reason = _decide_value(address, source_field, target_field, promoted_contents)
        if after is not None:
            moves.append(FieldMove(address, source_field.kind, before, after, target_field, source_field))
        elif source_field.value is not None:
            stays.append(KeptDifference(address, source_field.value, before, reason))
    stays += [
        KeptDifference(address, None, unmatched_field.value)
        for address, unmatched_field in target.fields.items()
        if address not in source.fields
    ]
    missing = sorted(source.owners - target.owners)
    return PromotionChanges(tuple(sorted(moves, key=_sort_key)), tuple(stays), tuple(missing))


def _sort_key(move: FieldMove) -> tuple[int, FieldAddress]:
    return list(FieldKind).index(move.kind), move.address


def _decide_value(
    address: FieldAddress,
    source_field: ContentField,
    target_field: ContentField | None,
    promoted_contents: EnvironmentContents | None,
) -> tuple[Any, str]:
    """Return the new value of the target's field, or None and the reason why a human should look at it."""
    if source_field.kind in (FieldKind.IMAGE, FieldKind.MODEL) and target_field is not None:
        after = _put_version_on_target(str(source_field.value), str(target_field.value), source_field.kind)
        if after is None:
            return None, "another image" if source_field.kind is FieldKind.IMAGE else "another kind of place"
        return (after, "") if after != target_field.value else (None, "")
    if source_field.kind in (FieldKind.IMAGE, FieldKind.MODEL):
        return None, "not there"
    if source_field.kind is not FieldKind.PARAMETER or promoted_contents is None:
        return None, ""
    promoted_field = promoted_contents.fields.get(address)
    old = promoted_field.value if promoted_field else None
    if old == source_field.value:
        return None, ""  # it already differed at the last promotion, so the difference is intended
    now = target_field.value if target_field else None
    return (source_field.value, "") if now == old else (None, "changed in both")


def _put_version_on_target(source: str, target: str, kind: FieldKind) -> str | None:
    """Put the source's version on the target's address, because environments may use different registries or buckets.

    None if the two addresses are not versions of the same artifact.
    """
    if kind is FieldKind.IMAGE or source.startswith(_IMAGE_SCHEMES):
        (name, version), (target_name, _) = split_image(source), split_image(target)
        return target_name + version if _last_segment(name) == _last_segment(target_name) else None
    scheme, _, address_rest = source.partition("://")
    target_scheme, has_scheme, target_rest = target.partition("://")
    if not has_scheme or not address_rest:
        return source
    if scheme != target_scheme:
        return None
    if scheme in _HUB_SCHEMES:
        return source  # the first path segment is part of the model's name
    host, slash, path = address_rest.partition("/")
    return f"{scheme}://{target_rest.partition('/')[0]}{slash}{path}" if host else source


def split_image(image: str) -> tuple[str, str]:
    """Split an image into `host:5000/a/b` and its version: `:tag`, `@digest` or both."""
    name, separator, digest = image.partition("@")
    slash = name.rfind("/")
    colon = name.find(":", slash + 1)
    tag = name[colon:] if colon >= 0 else ""
    return name.removesuffix(tag) if tag else name, tag + separator + digest


def _last_segment(name: str) -> str:
    return name.rpartition("/")[2]


def rename_matching_owners(source: EnvironmentContents, target: EnvironmentContents) -> EnvironmentContents:
    """Treat the only object of a kind on each side as the same object, even if the names differ."""
    renamed = {}
    for owner in target.owners - source.owners:
        partners, rivals = ([item for item in side.owners if item[:2] == owner[:2]] for side in (source, target))
        if len(partners) == 1 and len(rivals) == 1:
            renamed[owner] = partners[0]
    if not renamed:
        return target
    return EnvironmentContents(
        {
            FieldAddress(renamed.get(address.owner, address.owner), address.path): item
            for address, item in target.fields.items()
        }
    )


def get_field_name(address: FieldAddress) -> str:
    """Return the last name of a field path; for an environment variable its name."""
    steps = parse_field_path(address.path)
    if not steps:
        return address.path
    is_value = len(steps) > 1 and steps[-1].name == "value"
    return (steps[-2].element if is_value else None) or steps[-1].name


def mask_field_value(address: FieldAddress, value: Any) -> Any:
    """Mask values that look like secrets, for plans and commit messages."""
    return mask_value(get_field_name(address), value)


def describe_kept(stays: tuple[KeptDifference, ...]) -> Iterator[tuple[str, str]]:
    """Yield a short label and the target's value of each kept difference, without names and annotations."""
    for stay in stays:
        path = stay.address.path
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
            yield (
                get_field_name(stay.address),
                _shorten_value(
                    mask_field_value(stay.address, stay.target), mask_field_value(stay.address, stay.source)
                ),
            )


def _shorten_value(value: Any, other: Any) -> str:
    """Shorten to 40 characters; of a list, keep only the items that the other side lacks."""
    if isinstance(value, list):
        only_here = [item for item in value if not isinstance(other, list) or item not in other]
        value = " ".join(map(str, only_here or value))
    text = str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
