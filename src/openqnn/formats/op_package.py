"""What an op package declares, as records: the content of its XML file, and of a declaration in Python.

Words are those of the XML: ranks such as "4D", data types such as "QNN_DATATYPE_FLOAT_32".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BACKENDS: Final = ("CPU", "HTP", "GPU", "DSP")
BACKEND_SPECIFIC: Final = "BACKEND_SPECIFIC"
PREFIX: Final = "QNN_DATATYPE_"
TYPES: Final = (
    "INT_8", "INT_16", "INT_32", "INT_64", "UINT_8", "UINT_16", "UINT_32", "UINT_64", "FLOAT_16", "FLOAT_32",
    "FLOAT_64", "BFLOAT_16", "SFIXED_POINT_4", "SFIXED_POINT_8", "SFIXED_POINT_16", "SFIXED_POINT_32",
    "UFIXED_POINT_4", "UFIXED_POINT_8", "UFIXED_POINT_16", "UFIXED_POINT_32", "BOOL_8", "STRING",
)  # fmt: skip
DATATYPES: Final = (*(PREFIX + name for name in TYPES), BACKEND_SPECIFIC)
SCALAR: Final = "SCALAR"
RANKS: Final = (SCALAR, "ND", *(f"{n}D" for n in range(9)))
LAYOUTS: Final = ("NHWC", "NCHW", "NDHWC", "NFC", "NCF", "NONTRIVIAL", "UNDEFINED", "BACKEND_SPECIFIC")


@dataclass(frozen=True, slots=True)
class Constraint:
    """A sentence about what is valid; `kind` says of what: Shape, Datatype, Value, Attribute or so."""

    id: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class OperandDef:
    """An input, an output or a parameter. What does not apply to one is empty there."""

    name: str
    description: str = ""
    mandatory: bool = True
    datatypes: tuple[str, ...] = (f"{PREFIX}FLOAT_32",)
    rank: str = "ND"
    layout: str = ""
    shape: str = ""
    constraints: tuple[Constraint, ...] = ()
    default: str = ""
    repeated: bool = False
    static: bool = False
    enumeration: tuple[str, ...] = ()

    @property
    def is_scalar(self) -> bool:
        return self.rank == SCALAR

    @property
    def fixed_rank(self) -> int | None:
        """The number of axes, where there is one."""
        return int(self.rank[:-1]) if self.rank[:-1].isdigit() else None


@dataclass(frozen=True, slots=True)
class OpDef:
    """An operation; in a supplement, what a backend says of it besides."""

    name: str
    inputs: tuple[OperandDef, ...] = ()
    outputs: tuple[OperandDef, ...] = ()
    params: tuple[OperandDef, ...] = ()
    description: str = ""
    code: str = ""
    reference: tuple[str, str] = ("", "")
    use_default_translation: bool | None = None
    backends: tuple[str, ...] = BACKENDS[:1]


@dataclass(frozen=True, slots=True)
class Supplement:
    """What one backend supports, and with which data types and shapes."""

    backend: str
    supported: tuple[str, ...] = ()
    ops: tuple[OpDef, ...] = ()


@dataclass(frozen=True, slots=True)
class OpPackage:
    """A package of operations."""

    name: str
    ops: tuple[OpDef, ...] = ()
    supplements: tuple[Supplement, ...] = ()
    domain: str = "aisw"
    version: str = "1.0"
    qhpi: bool = False

    def datatypes(self, op: str, operand: str, backend: str) -> tuple[str, ...]:
        """The types of an operand on a backend: its supplement's word, where it has one."""
        for supplement in self.supplements:
            for said in supplement.ops:
                if (supplement.backend, said.name) == (backend, op):
                    for item in (*said.inputs, *said.outputs, *said.params):
                        if item.name == operand and item.datatypes:
                            return item.datatypes
        found = next(o for o in self.ops if o.name == op)
        return next(i.datatypes for i in (*found.inputs, *found.outputs, *found.params) if i.name == operand)

    def ops_on(self, backend: str) -> tuple[OpDef, ...]:
        """The operations that a backend supports."""
        listed = {name for s in self.supplements if s.backend == backend for name in s.supported}
        return tuple(op for op in self.ops if backend in op.backends or op.name in listed)

    @property
    def backends(self) -> tuple[str, ...]:
        return tuple(b for b in BACKENDS if self.ops_on(b))
