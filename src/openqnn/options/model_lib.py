"""Options of qnn-model-lib-generator."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import option


@dataclass(frozen=True)
class ModelLib:
    """The model and its libraries."""

    cpp: str = option("", "-c", metavar="CPP", required=True, help="the model's source, from a converter")
    bin: str = option(
        "", "-b", metavar="BIN", help="the model's weights; a model that has any cannot be loaded without"
    )
    lib_targets: tuple[str, ...] | None = option(
        None, "-t", metavar="TARGET", nargs="+",
        help="what to build for, such as x86_64-linux-clang (default: aarch64-android x86_64-linux-clang)",
    )  # fmt: skip
    lib_name: str = option(
        "", "-l", metavar="NAME", help="name of the library (default: that of the weights, or of the source)"
    )
    output_dir: str = option(
        "lib",
        "-o",
        metavar="DIR",
        help="libraries go to DIR/TARGET/libNAME.so (default: lib); of one target, FILE.so is the"
        " library itself",
    )
