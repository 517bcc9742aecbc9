"""snpe-dlc-info: the older name of qairt-dlc-info."""

from __future__ import annotations

from dataclasses import replace

from openqnn.cli.tools.qairt_dlc_info import TOOL as INFO

TOOL = replace(
    INFO,
    name="snpe-dlc-info",
    examples=("snpe-dlc-info -i model.dlc",),
)
