"""The operations of package `qti.aisw`, each declared once. Importing this registers all of them in OPS."""

from openqnn.ops import conv, elementwise
from openqnn.ops.build import Builder, infer_outputs, schema_of
from openqnn.ops.schema import OPS, Moves, OpSchema, Role

__all__ = ["OPS", "Builder", "Moves", "OpSchema", "Role", "conv", "elementwise", "infer_outputs", "schema_of"]
