"""Custom kinds, from their CustomResourceDefinition.

In: a definition. Out: faults if it may not be stored, else one CustomKind a version, which decodes, defaults, validates
and prints its objects. Never: I/O; CEL rules are handed out as calls for `cel.evaluate`.
"""

from argosy.kube.schema.crd.definition import check_definition, with_definition_defaults
from argosy.kube.schema.crd.kind import CustomKind, converted, custom_kinds

__all__ = ["CustomKind", "check_definition", "converted", "custom_kinds", "with_definition_defaults"]
