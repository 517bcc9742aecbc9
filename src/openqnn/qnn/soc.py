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


# Chips of the SDK's table without an HTP that libQnnHtp compiles for: name, number, Hexagon architecture, and
# the library that they run with.
_OTHER_TABLE = """
SM8250    21 66 libQnnDsp.so
QRB5165   21 66 libQnnDsp.so
SM7250    25 66 libQnnDsp.so
SM7225    29 66 libQnnDsp.so
SM6350    29 66 libQnnDsp.so
QCS7230   51 66 libQnnDsp.so
SM6225    40 66 libQnnDsp.so
SM4350    31 66 libQnnDsp.so
SM6375    31 66 libQnnDsp.so
SM4250    28 66 libQnnDsp.so
SM6115    28 66 libQnnDsp.so
QCM4290   28 66 libQnnDsp.so
QCS610    16 66 libQnnDsp.so
QCS410    33 66 libQnnDsp.so
QCM6125   19 66 libQnnDsp.so
QRB4210   49 66 libQnnDsp.so
QCM4490   59  0 libQnnCpu.so
SM4450    59  0 libQnnCpu.so
SC7280X   44 68 libQnnCpu.so
"""
# Names on boxes and in shops, without "Snapdragon": the part that they stand for.
_MARKETED = {
    "8 ELITE GEN 5": "SM8850", "8 GEN 5": "SM8845", "8 ELITE": "SM8750", "8S GEN 4": "SM8735",
    "8 GEN 3": "SM8650", "8S GEN 3": "SM8635", "8 GEN 2": "SM8550", "8+ GEN 1": "SM8475", "8 GEN 1": "SM8450",
    "888+": "SM8350P", "888": "SM8350", "7 GEN 4": "SM7750", "7+ GEN 3": "SM7675", "7 GEN 3": "SM7550",
    "7S GEN 3": "SM7635", "7+ GEN 2": "SM7475", "7S GEN 2": "SM7435", "7 GEN 1": "SM7450", "780G": "SM7350",
    "778G": "SM7325", "6 GEN 4": "SM6650", "6 GEN 3": "SM6475", "6 GEN 1": "SM6450", "X ELITE": "SC8380XP",
    "X PLUS": "SC8380XP", "X2 ELITE": "SC8480XP", "8CX GEN 4": "SC8380XP", "8CX GEN 3": "SC8280X",
    "7C GEN 2": "SC7280X", "865": "SM8250", "865+": "SM8250", "870": "SM8250", "765": "SM7250",
    "765G": "SM7250", "750G": "SM7225", "690": "SM6350", "680": "SM6225", "480": "SM4350", "695": "SM6375",
    "460": "SM4250",
    "662": "SM6115", "4 GEN 2": "SM4450", "XR2 GEN 2": "SXR2230P",
}  # fmt: skip


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
    text = _part(str(wanted))
    _refuse_others(text)
    if text.isdecimal():
        model = int(text)
        return next((soc for soc in SOCS if soc.model == model), Soc(f"SoC {model}", model, None, None))
    for soc in SOCS:
        if soc.name == text:
            return soc
    known = [soc.name for soc in SOCS] + list(_MARKETED)
    close = get_close_matches(text, known, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(s.name for s in SOCS)}"
    raise UsageError(f"there is no SoC '{wanted}'", hint=hint)


def _part(said: str) -> str:
    """The part or number that a name stands for: "Snapdragon 8 Gen 3" and "SD 8 Gen 3" are SM8650."""
    text = " ".join(said.replace("®", "").replace("_", " ").upper().split())
    for maker in ("QUALCOMM ", "SNAPDRAGON ", "SD "):
        text = text.removeprefix(maker)
    return _MARKETED.get(text.removesuffix(" 5G"), text)


def _refuse_others(text: str) -> None:
    """UsageError for a chip without HTP: the library may compile for it, and the chip not run the result."""
    for line in _OTHER_TABLE.strip().splitlines():
        name, model, arch, library = line.split()
        if text in (name, model):
            part = f"Hexagon v{arch}" if arch == "66" else "no HTP that the library compiles for"
            raise UsageError(
                f"{name} (SoC {model}) has {part}: HTP is of v68 and later",
                hint=f"its backend is {library}, with the model library or the DLC itself;"
                " there is no context binary of HTP for it",
            )


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
