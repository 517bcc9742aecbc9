"""Options of the tools about DLC files."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import noted, option

_ALL = "all that is known is always printed"


@dataclass(frozen=True)
class DlcInfoOptions:
    """The DLC."""

    input_dlc: str = option("", "-i", "--input_dlc", metavar="FILE", required=True, help="the DLC file")
    save: str = option("", "-s", "--save", metavar="FILE", help="also write the table of layers as CSV")
    display_memory: None = noted("-m", "--display_memory", why=_ALL, help="show memory")
    display_all: None = noted(
        "-d", "-a", "--display_all", "--display_all_encodings", why="`openqnn encodings FILE` prints them",
        help="show all encodings",
    )  # fmt: skip
    input_dlc_type: None = noted("-t", "--dump_framework_trace", why=_ALL, help="show source names")


@dataclass(frozen=True)
class DlcJsonOptions:
    """The DLC and its description."""

    input_dlc: str = option("", "-i", "--input_dlc", metavar="FILE", required=True, help="the DLC file")
    output_json: str = option(
        "", "-o", "--output_json", metavar="FILE", help="the JSON file (default: MODEL.json beside the DLC)"
    )


@dataclass(frozen=True)
class DlcDiffOptions:
    """Two DLC files."""

    input_dlc_one: str = option(
        "", "-i1", "--input_dlc_one", metavar="FILE", required=True, help="the first DLC file"
    )
    input_dlc_two: str = option(
        "", "-i2", "--input_dlc_two", metavar="FILE", required=True, help="the second DLC file"
    )
    parts: None = noted(
        "-c", "-l", "-p", "-H", "-w", "-o", "-x", "--copyrights", "--layers", "--parameters", "--hta",
        "--weights", "--outputs", why="all differences are always told", help="which differences to tell",
    )  # fmt: skip


@dataclass(frozen=True)
class DlcPrepareOptions:
    """The DLC."""

    input_dlc: str = option("", "-i", "--input_dlc", metavar="FILE", required=True, help="the DLC file")
    output_dlc: str = option(
        "", "-o", "--output_dlc", metavar="FILE", help="the result (default: MODEL.prepared.dlc beside it)"
    )
    soc: str = option(
        "",
        "--htp_socs",
        "--soc",
        "--soc_model",
        metavar="NAME",
        help="the SoC, by name or number (default: SM8650)",
    )
