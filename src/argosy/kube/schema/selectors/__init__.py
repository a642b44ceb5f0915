"""Label and field selectors of list and watch requests and of manifests.

In: text, or `matchLabels`/`matchExpressions`. Out: selectors that match, or a ManifestError with the server's message.
Never: reads a cluster.
"""

from argosy.kube.schema.selectors.field_labels import FIELD_LABELS, FieldLabels, custom_field_labels, field_labels
from argosy.kube.schema.selectors.fields import FieldSelector, FieldTerm, fields
from argosy.kube.schema.selectors.labels import (
    LabelSelector,
    Requirement,
    from_label_selector,
    label_key_problems,
    label_value_problems,
    labels,
)

__all__ = [
    "FIELD_LABELS",
    "FieldLabels",
    "FieldSelector",
    "FieldTerm",
    "LabelSelector",
    "Requirement",
    "custom_field_labels",
    "field_labels",
    "fields",
    "from_label_selector",
    "label_key_problems",
    "label_value_problems",
    "labels",
]
