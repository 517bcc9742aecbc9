"""What somebody said about a tensor's encoding before the quantizer looks at data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from openqnn.ir.encoding import Encoding

MODEL = "model"  # the source of what the model itself says
OVERRIDE = "override"  # that of what a file of the user's says


@dataclass(frozen=True, slots=True)
class Given:
    """What a user or the model says about one tensor. Without an encoding only its width is said.

    `also` has encodings of other widths in which some readers take the tensor: it is converted for them.
    """

    source: str
    bitwidth: int
    floating: bool = False
    encoding: Encoding | None = None
    signed: bool = False
    also: tuple[Encoding, ...] = ()

    def unsigned(self) -> Given:
        """Turns the encoding into unsigned storage of the same real numbers: integers and offset are shifted
        by half the range."""
        if not self.signed or self.encoding is None:
            return self
        half = 1 << (self.bitwidth - 1)
        offsets = tuple(o - half for o in self.encoding.offset)
        return replace(self, signed=False, encoding=replace(self.encoding, offset=offsets))
