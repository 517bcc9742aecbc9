"""Every problem that a user can cause is one of these; anything else that escapes is our own bug.

The text of an error says what, where and why; `hint` says what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class OpenQnnError(Exception):
    """Root of the family. `str()` gives the message and, on a line of its own, the hint."""

    id = "OQ100"
    """Its place in the catalogue of errors: `openqnn explain OQ100`."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message

    def told(self) -> str:
        """The message as commands print it: with the id, and the hint on a line of its own."""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"error: {self.message} [{self.id}]{hint}"


class OpenQnnWarning(UserWarning):
    """Something that the user should know but that does not stop the work."""


class AccuracyWarning(OpenQnnWarning):
    """Numbers that quantization or half precision leave too little of."""


class ModelError(OpenQnnError):
    """The model file is missing, damaged or contradicts itself."""

    id = "OQ110"


class ShapeError(ModelError):
    """Shapes, ranks or data types that do not fit together."""

    id = "OQ111"


class DynamicShapeError(ModelError):
    """Dimensions are symbolic and nobody said what they are. `shapes` are how answers look, by input."""

    id = "OQ112"

    def __init__(self, message: str, shapes: Mapping[str, str]) -> None:
        flags = " ".join(f"--input_shape {name}={shape}" for name, shape in shapes.items())
        python = ", ".join(f"{name!r}: ({shape.replace(',', ', ')},)" for name, shape in shapes.items())
        super().__init__(message, hint=f"say it: {flags} (Python: input_shapes={{{python}}})")
        self.shapes = shapes

    @classmethod
    def of_all(cls, errors: Sequence[DynamicShapeError]) -> DynamicShapeError:
        """One for the inputs of several."""
        shapes = {name: shape for error in errors for name, shape in error.shapes.items()}
        return cls("; ".join(error.message for error in errors), shapes)


class InputError(OpenQnnError):
    """Arrays given to a session, or files given to a tool, do not fit the graph."""

    id = "OQ120"


class OutputError(OpenQnnError):
    """A result cannot be written: no permission, no space, or something of the user's is in the way."""

    id = "OQ130"


class UsageError(OpenQnnError):
    """Contradicting or impossible options."""

    id = "OQ140"


class BackendError(OpenQnnError):
    """A backend refused or failed to run a graph."""

    id = "OQ150"


class ResourceError(BackendError):
    """The machine stopped the work: no memory, a file that the system refuses, a signal, Ctrl-C."""

    id = "OQ151"


class LibraryError(OpenQnnError):
    """A vendor library is missing or cannot be loaded."""

    id = "OQ160"


class FetchError(OpenQnnError):
    """An example model could not be fetched, or is not the file that it should be."""

    id = "OQ180"


class TargetMissedError(OpenQnnError):
    """The accuracy that was asked for cannot be reached; the best that there is was written."""

    id = "OQ190"


class VerifyError(OpenQnnError):
    """A graph breaks an invariant; names the pass that left it so."""

    id = "OQ170"


@dataclass(frozen=True, slots=True)
class Problem:
    """A node that cannot be translated, or that a backend does not take, and why.

    `source` is the node of the source model that it comes from, where it is another.
    """

    op: str
    node: str
    reason: str
    hint: str = ""
    source: str = ""

    def __str__(self) -> str:
        where = f"{self.op} '{self.node}'" + (f" ({self.source})" if self.source else "")
        return f"{where}: {self.reason}" + (f"\n  hint: {self.hint}" if self.hint else "")


class UnsupportedError(OpenQnnError):
    """Source operations that have no QNN equivalent, collected over the whole model."""

    id = "OQ113"

    def __init__(self, message: str, *, hint: str = "", problems: Sequence[Problem] = ()) -> None:
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)
