"""Options about op packages and about tools that the converters once carried along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openqnn.options.field import option
from openqnn.options.source import custom_ops


def op_package_lib() -> Any:
    return option(
        "", "--op_package_lib", "-opl", metavar="LIBRARIES",
        help="op packages that compute custom operations without a Python function while ranges are"
        " measured: PATH:PROVIDER, separated by commas",
    )  # fmt: skip


def converter_op_package_lib() -> Any:
    return option(
        "", "--converter_op_package_lib", "-cpl", metavar="LIBRARIES",
        help="libraries that know the output shapes of custom operations, separated by commas",
    )  # fmt: skip


def op_package_config() -> Any:
    return option(
        (), "--op_package_config", "-opc", metavar="XML", nargs="+", exclusive="package",
        help="op packages that declare custom operations of the model (XML)",
    )  # fmt: skip


@dataclass(frozen=True)
class OwnDeclarations:
    """Operations of your own."""

    custom_ops: tuple[str, ...] = custom_ops()


@dataclass(frozen=True)
class OwnOps:
    """Operations of your own."""

    custom_ops: tuple[str, ...] = custom_ops("--op_package_config", "-opc")
    converter_op_package_lib: str = converter_op_package_lib()
    own_packages: str = option(
        "", "--op_packages", "--op_package_lib", "-opl", metavar="LIST",
        help="op packages, PATH:PROVIDER separated by commas: registered with the library that they are"
        " for, and computing operations here that have no Python function",
    )  # fmt: skip


@dataclass(frozen=True)
class Packages:
    """Op packages."""

    op_package_lib: str = op_package_lib()
    converter_op_package_lib: str = converter_op_package_lib()
    package_name: str = option(
        "", "-p", "--package_name", metavar="NAME", exclusive="package",
        help="op package of every node (default: qti.aisw)",
    )  # fmt: skip
    custom_op_config_paths: tuple[str, ...] = op_package_config()


@dataclass(frozen=True)
class QairtPackages:
    """Op packages."""

    converter_op_package_lib: str = converter_op_package_lib()
    package_name: str = option(
        "", "--package_name", "-p", metavar="NAME", exclusive="package",
        help="op package of every node (default: qti.aisw)",
    )  # fmt: skip
    custom_op_config_paths: tuple[str, ...] = op_package_config()


@dataclass(frozen=True)
class Checker:
    """Architecture checker."""

    arch_checker: bool = option(
        False, "--arch_checker",
        help="also write what qnn-architecture-checker says about the model, as a csv beside it",
    )  # fmt: skip
