"""Label and field selectors, as a list or watch request carries them and as manifests write them.

In: the text (or `matchLabels`/`matchExpressions`). Out: selectors that match, or a ManifestError in the server's words.
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
