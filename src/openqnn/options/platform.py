"""Options of qnn-platform-validator."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option


@dataclass(frozen=True)
class ValidatorOptions:
    """What is validated."""

    backend: str = option(
        "",
        "--backend",
        metavar="NAME",
        choices=("cpu", "gpu", "dsp", "htp", "all"),
        help="cpu, gpu, dsp (or htp), all",
    )
    directory: str = option(
        "",
        "--directory",
        metavar="DIR",
        help="an unpacked SDK whose libraries are looked at (default: those that the other tools find)",
    )
    dsp_type: str = option("", "--dsp_type", metavar="VERSION", help="HTP architecture, such as v68 or v75")
    build_variant: str = option(
        "x86_64-linux-clang",
        "--buildVariant",
        metavar="TOOLCHAIN",
        choices=("x86_64-linux-clang", "aarch64-android", "aarch64-windows-msvc"),
        help="libraries of which build (default: x86_64-linux-clang, which can be loaded here)",
    )
    test_backend: bool = option(False, "--testBackend", help="run a small graph on the backend")
    core_version: bool = option(False, "--coreVersion", help="report the version of the core API")
    lib_version: bool = option(False, "--libVersion", help="report the build of the library")
    output_dir: str = option(
        "output", "--output_dir", metavar="DIR", help="where the CSV file goes (default: output)"
    )
    device_id: str = option(
        "", "--deviceId", metavar="ID", help="validate the device that adb knows by this serial number"
    )
    target_path: str = option(
        "/tmp",
        "--targetPath",
        "--place",
        metavar="DIR",
        help="a folder on the device with room (default: /tmp)",
    )
    remote_host: str = option(
        "", "--remoteHost", metavar="HOST", help="where the adb server of the device runs"
    )
    target: str = option(
        "",
        "--target",
        metavar="DEVICE",
        help="validate a device: local, ssh://user@host[:port], adb[:SERIAL]",
    )
    libraries: str = option(
        "",
        "--libraries",
        metavar="PATH",
        help="a wheel or folder with Qualcomm's libraries for the device (default: --directory, or those of "
        "this machine)",
    )
    debug: bool = option(False, "--debug", help="show what the library logs")
