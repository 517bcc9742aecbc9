"""Files in which users declare operations of their own: Python modules, and the XML of op packages."""

from __future__ import annotations

import inspect
import os
import re
import sys
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Final

from openqnn.errors import InputError, OpenQnnError, UsageError
from openqnn.formats.atomic import replacing
from openqnn.formats.op_package import OpPackage
from openqnn.formats.op_package_python import print_python
from openqnn.formats.op_package_xml import package_of, print_op_package, read_op_package
from openqnn.formats.xml_lines import parse_xml
from openqnn.frontends.custom_ops import declared_names
from openqnn.ops.custom import custom_ops, declare_package, package_named
from openqnn.ops.user_code import line_of
from openqnn.qnn.op_package_library import (
    OpPackageLibrary,
    OpPackages,
    op_package_libraries,
    packages_everywhere,
    register_everywhere,
)

_FILES: Final[list[str]] = []


def load_custom_ops(*paths: str | os.PathLike[str]) -> None:
    """Reads files that declare operations: Python files are run, XML files are those of op packages.

    What they declare holds for this process. InputError where a file cannot be read, with the line at fault.
    """
    for path in map(Path, paths):
        if not path.is_file():
            raise InputError(f"{path}: {'it is a folder, not a file' if path.is_dir() else 'no such file'}")
        (_read if path.suffix == ".xml" else _run)(path)
        if str(path.absolute()) not in _FILES:
            _FILES.append(str(path.absolute()))


def declare_op_package(package: OpPackage) -> None:
    """Declares the operations of a package by its record, as the XML of the package would.

    UsageError where the record is not valid, by the rules of the XML.
    """
    caller = inspect.stack(0)[1]
    try:
        package_of(parse_xml(print_op_package(package).encode(), package.name))
    except InputError as e:
        told = re.sub(r"^[^<]*", "", e.message)
        raise UsageError(f"op package {package.name}: {told}", hint=e.hint) from e
    declare_package(package, f"{caller.filename}:{caller.lineno}")


def write_declaration(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Writes what a file declares as the XML of an op package, or as Python, by the ending of `target`."""
    kind = Path(target).suffix
    if kind not in (".xml", ".py"):
        raise UsageError(f"{target}: a declaration is XML or Python", hint="end its name in .xml or .py")
    load_custom_ops(source)
    names = list(dict.fromkeys(op.package for op in custom_ops() if not op.seen))
    if len(names) != 1:
        told = ", ".join(names) or "no package: a composite needs none"
        raise InputError(f"{source}: one package is written at a time, and it declares {told}")
    package = package_named(names[0])
    with replacing(target) as file:
        file.write((print_op_package if kind == ".xml" else print_python)(package).encode())


def use_op_packages(packages: OpPackages) -> None:
    """Op packages, "path:provider", for all that this process does from now on.

    A backend registers those that are for it, and those for libQnnCpu compute operations here that have no
    Python function.
    """
    from openqnn.vendor.custom_op_libraries import use_op_package_libraries

    libraries = op_package_libraries(packages)
    use_op_package_libraries(libraries)
    register_everywhere(libraries)


@dataclass(frozen=True, slots=True)
class DeclaredOps:
    """What a process was told of operations of the user's, to be told to another one."""

    files: tuple[str, ...] = ()
    packages: tuple[OpPackageLibrary, ...] = ()


NOTHING_DECLARED: Final = DeclaredOps()


def declared_ops() -> DeclaredOps:
    """The files that were read, and the packages in use."""
    return DeclaredOps(tuple(_FILES), packages_everywhere())


def own_words(known: DeclaredOps) -> list[str]:
    """The options that say the same to a tool of its own process."""
    words = [word for path in known.files for word in ("--custom_ops", path)]
    return words + (["--op_packages", ",".join(map(str, known.packages))] if known.packages else [])


def declare_again(known: DeclaredOps) -> None:
    """In a process of its own: what is not known here yet."""
    load_custom_ops(*(path for path in known.files if path not in _FILES))
    left = [p for p in known.packages if p not in packages_everywhere()]
    if left:
        use_op_packages(left)


def _read(path: Path) -> None:
    try:
        declare_package(read_op_package(path), str(path))
    except UsageError as e:
        raise InputError(f"{path}: {e.message}", hint=e.hint) from e


def _run(path: Path) -> None:
    if path.suffix != ".py":
        hint = "custom ops are declared in a Python file, or in the XML of an op package"
        raise InputError(f"{path}: neither a Python file nor XML", hint=hint)
    name = f"openqnn_custom_{path.stem}"
    spec = util.spec_from_file_location(name, path.absolute())
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and the like look their module up
    folder = str(path.absolute().parent)
    sys.path.insert(0, folder)  # what it imports may stand beside it
    try:
        spec.loader.exec_module(module)
    except OpenQnnError as e:
        raise InputError(f"{path}: {e.message} (at {line_of(e, str(path))})", hint=e.hint) from e
    except SyntaxError as e:
        raise InputError(f"{e.filename or path}:{e.lineno}: {e.msg}") from e
    except SystemExit as e:
        raise InputError(f"{path}: it ends the program (at {line_of(e)})", hint="leave sys.exit out") from e
    except Exception as e:
        raise InputError(f"{path}: {type(e).__name__}: {e} (at {line_of(e)})") from e
    finally:
        sys.path.remove(folder)
    if not declared_names():
        hint = "@openqnn.composite(domain, name) or @openqnn.custom_op(package, name) over a function"
        raise InputError(f"{path}: it declares no operation", hint=hint)
