"""Public Snapdragon SoCs by name and number, with their HTP architecture and VTCM.

Architecture and VTCM are what libQnnHtp itself compiles for when it is given the number; a test asks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from openqnn.errors import UsageError

DEFAULT_SOC = 57
"""SM8650. Without a SoC, HTP prepares for its oldest architecture, which lacks much that newer ones run."""


@dataclass(frozen=True, slots=True)
class Soc:
    """One chip; `arch` and `vtcm_mb` are None for a number that is not in the table."""

    name: str
    model: int
    arch: int | None
    vtcm_mb: int | None

    @property
    def has_floats(self) -> bool:
        return self.arch is None or self.arch >= FLOATS_FROM

    def __str__(self) -> str:
        return f"{self.name} (SoC {self.model}, HTP v{self.arch})" if self.arch else self.name


# Name, model number, HTP architecture, VTCM in MB.
_TABLE = """
SM8350    30 68  4
SM8350P   30 68  4
SM7350    32 68  2
SM8325    34 68  4
SM7325    35 68  2
QCM6490   35 68  2
SM8450    36 69  8
SC8280X   37 68  4
SM7315    38 68  2
SA8295    39 68  8
SM7450    41 69  2
SM8475    42 69  8
SM8550    43 73  8
SXR1230P  45 73  2
SSG2115P  46 73  2
SM6450    50 73  2
SA8255    52 73  8
SXR2230P  53 69  8
SM7475    54 69  4
SM8650    57 75  8
SSG2125P  58 73  2
SC8380XP  60 73  8
SM7435    61 73  2
SA8540    62 68  8
SM7550    64 73  2
QCS8550   66 73  8
SA8620P   67 75  8
SM8635    68 73  4
SM8750    69 79  8
SM7675    70 73  4
SA8797    72 81 16
SM7635    73 73  2
SM6650    74 73  2
SXR2330P  75 79  8
SM6475    76 73  2
QCS9100   77 73  8
QCM6690   78 73  2
QCS8300   82 75  8
SM8735    85 73  8
SM7750    86 73  4
SM8850    87 81  8
SC8480XP  88 81  8
SAR2230P  95 81  4
SW6100    96 81  4
SM8845    97 81  8
"""


def _row(line: str) -> Soc:
    name, model, arch, vtcm = line.split()
    return Soc(name, int(model), int(arch), int(vtcm))


SOCS: tuple[Soc, ...] = tuple(_row(line) for line in _TABLE.strip().splitlines())
ARCHITECTURES: tuple[int, ...] = (68, 69, 73, 75, 79, 81)
FLOATS_FROM = 69
"""The first architecture that computes floats. For an older one the library takes every float node, compiles
some, and fails to compile others."""


def find_soc(wanted: str | int | None = None) -> Soc:
    """A SoC by name (`SM8650`, in any case) or model number; the default without either.

    A number that is not in the table is passed on: the library may know chips that are not listed here.
    """
    if wanted is None:
        return find_soc(DEFAULT_SOC)
    text = str(wanted).strip().upper()
    if text.isdecimal():
        model = int(text)
        return next((soc for soc in SOCS if soc.model == model), Soc(f"SoC {model}", model, None, None))
    for soc in SOCS:
        if soc.name == text:
            return soc
    close = get_close_matches(text, [soc.name for soc in SOCS], n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(s.name for s in SOCS)}"
    raise UsageError(f"there is no SoC '{wanted}'", hint=hint)


def no_floats(soc: Soc) -> str:
    """What to do with a float graph for a chip that does not compute floats."""
    return f"{soc} computes no floats: quantize the model, or choose a chip of HTP v{FLOATS_FROM} or later"


def soc_of_arch(arch: str | int) -> Soc:
    """A typical SoC of an HTP architecture (`75`, `v75`)."""
    text = str(arch).strip().lower().removeprefix("v")
    typical = {68: 30, 69: 36, 73: 43, 75: 57, 79: 69, 81: 87}
    if not text.isdecimal() or int(text) not in typical:
        known = ", ".join(f"v{number}" for number in typical)
        raise UsageError(f"there is no HTP architecture '{arch}'", hint=f"known: {known}")
    return find_soc(typical[int(text)])
