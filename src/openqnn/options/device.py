"""Options of tools that run a model on a device."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option


@dataclass(frozen=True)
class DeviceRunOptions:
    """A device."""

    target: str = option(
        "",
        "--target",
        metavar="DEVICE",
        help="run on a device: local, ssh://user@host[:port], adb[:SERIAL] (default: in this process)",
    )
    place: str = option(
        "/tmp",
        "--place",
        metavar="DIR",
        help="a folder on the device with room for the model (default: /tmp)",
    )
    target_os: str = option(
        "",
        "--target_os",
        metavar="NAME",
        help="what the device runs: x86_64-linux-clang, aarch64-linux, ... (default: what it says)",
    )
    libraries: str = option(
        "",
        "--libraries",
        metavar="PATH",
        help="a wheel or folder with Qualcomm's libraries for the device (default: those of this machine)",
    )
