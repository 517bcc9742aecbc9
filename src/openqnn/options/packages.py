"""Options about op packages and about tools that the converters once carried along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openqnn.options.field import option, refused

NO_PACKAGES = "models with operations of other op packages cannot be converted in this version"
NO_ARCH_CHECKER = "the architecture checker is a tool of its own, and not part of this version"


def op_package_config() -> Any:
    return option(
        (), "--op_package_config", "-opc", metavar="XML", nargs="+", exclusive="package",
        help="op packages that declare custom operations of the model (XML)",
    )  # fmt: skip


@dataclass(frozen=True)
class Packages:
    """Op packages."""

    op_package_lib: None = refused(
        "--op_package_lib", "-opl", why=NO_PACKAGES, metavar="LIBRARIES",
        help="op package libraries that the quantizer runs",
    )  # fmt: skip
    converter_op_package_lib: None = refused(
        "--converter_op_package_lib", "-cpl", why=NO_PACKAGES, metavar="LIBRARIES",
        help="libraries that know the output shapes of custom operations",
    )  # fmt: skip
    package_name: str = option(
        "", "-p", "--package_name", metavar="NAME", exclusive="package",
        help="op package of every node (default: qti.aisw)",
    )  # fmt: skip
    custom_op_config_paths: tuple[str, ...] = op_package_config()


@dataclass(frozen=True)
class QairtPackages:
    """Op packages."""

    converter_op_package_lib: None = refused(
        "--converter_op_package_lib", "-cpl", why=NO_PACKAGES, metavar="LIBRARIES",
        help="libraries that know the output shapes of custom operations",
    )  # fmt: skip
    package_name: str = option(
        "", "--package_name", "-p", metavar="NAME", exclusive="package",
        help="op package of every node (default: qti.aisw)",
    )  # fmt: skip
    custom_op_config_paths: tuple[str, ...] = op_package_config()


@dataclass(frozen=True)
class Checker:
    """Architecture checker."""

    arch_checker: None = refused(
        "--arch_checker", why=NO_ARCH_CHECKER, help="advice on layers that run slowly on the NPU"
    )
