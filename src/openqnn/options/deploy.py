"""Options of `openqnn deploy`."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option


@dataclass(frozen=True)
class DeployOptions:
    """The bundle and the device."""

    output: str = option(
        "", "-o", "--output", metavar="DIR", help="the folder to make (default: MODEL_bundle)"
    )
    soc: str = option("", "--soc", metavar="NAME", help="the SoC, by name or number (default: SM8650)")
    target_os: str = option(
        "x86_64-linux-clang",
        "--target_os",
        metavar="NAME",
        help="what the bundle is built for: x86_64-linux-clang (default), aarch64-linux, ...",
    )
    libraries: str = option(
        "",
        "--libraries",
        metavar="PATH",
        help="a wheel or folder with Qualcomm's libraries for it (default: those of this machine)",
    )
    data: str = option(
        "", "--data", metavar="NPZ", help="inputs of the golden run, by name (default: random numbers)"
    )
    target: str = option(
        "",
        "--target",
        metavar="DEVICE",
        help="send it, run it and compare: local, ssh://user@host, adb[:SERIAL]",
    )
    place: str = option(
        "/tmp", "--place", metavar="DIR", help="a folder on the device with room for it (default: /tmp)"
    )
    overwrite: bool = option(False, "--overwrite", help="replace a bundle that is there")
