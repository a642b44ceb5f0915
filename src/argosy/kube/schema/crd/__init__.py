"""Custom kinds, built from CustomResourceDefinitions.

In: a CRD. Out: errors if it is invalid, else one CustomKind per version, which decodes, defaults, validates and prints
its objects. Never: does I/O; evaluates CEL: rules are returned as calls for `cel.evaluate`.
"""

from argosy.kube.schema.crd.definition import check_definition, with_definition_defaults
from argosy.kube.schema.crd.kind import CustomKind, converted, custom_kinds

__all__ = ["CustomKind", "check_definition", "converted", "custom_kinds", "with_definition_defaults"]
