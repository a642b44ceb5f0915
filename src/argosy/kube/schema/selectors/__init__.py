"""Label and field selectors of list and watch requests and of manifests.

In: text, or `matchLabels`/`matchExpressions`. Out: selectors that match, or a ManifestError with the server's message.
Never: reads a cluster.
"""

from argosy.kube.schema.selectors.field_selector_parser import FieldSelector, FieldTerm, parse_field_selector
from argosy.kube.schema.selectors.labels import (
    LabelRequirement,
    LabelSelector,
    find_label_key_errors,
    find_label_value_errors,
    label_selector_from_wire,
    parse_label_selector,
)
from argosy.kube.schema.selectors.selectable_fields import (
    FIELD_LABELS,
    FieldLabels,
    build_custom_field_labels,
    get_field_labels,
)

__all__ = [
    "FIELD_LABELS",
    "FieldLabels",
    "FieldSelector",
    "FieldTerm",
    "LabelRequirement",
    "LabelSelector",
    "build_custom_field_labels",
    "find_label_key_errors",
    "find_label_value_errors",
    "get_field_labels",
    "label_selector_from_wire",
    "parse_field_selector",
    "parse_label_selector",
]
