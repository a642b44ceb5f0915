"""Custom kinds, from their CustomResourceDefinition.

In: a definition. Out: faults if it may not be stored, else one CustomKind a version, which decodes, defaults, validates
and prints its objects. Never: I/O; CEL rules are handed out as calls for `schema.cel.evaluate`.
"""

from argosy.schema.custom.definition import check_definition, with_definition_defaults
from argosy.schema.custom.kind import CustomKind, converted, custom_kinds

__all__ = ["CustomKind", "check_definition", "converted", "custom_kinds", "with_definition_defaults"]
