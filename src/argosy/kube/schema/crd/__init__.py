"""Custom kinds, built from CustomResourceDefinitions.

In: a CRD. Out: errors if it is invalid, else one CustomKind per version, which decodes, defaults, validates and prints
its objects. Never: does I/O; evaluates CEL: rules are returned as calls for `cel.evaluate`.
"""

from argosy.kube.schema.crd.definition_validation import apply_definition_defaults, check_definition
from argosy.kube.schema.crd.kind import CustomKind, build_custom_kinds, convert_version

__all__ = ["CustomKind", "apply_definition_defaults", "build_custom_kinds", "check_definition", "convert_version"]
