"""Operations that options declare: read before a command runs, whatever command it is."""

from __future__ import annotations

from argparse import Namespace


def declare_ops(arguments: Namespace) -> None:
    """Makes the operations of --custom_ops and --op_package_config known, and what libraries say of them.

    Most commands are given none, and import nothing here.
    """
    files = [
        *(getattr(arguments, "custom_op_config_paths", None) or ()),
        *(getattr(arguments, "custom_ops", None) or ()),
    ]
    if files:
        from openqnn.api.custom_ops import load_custom_ops

        load_custom_ops(*files)
    _use_libraries(arguments)


def _use_libraries(arguments: Namespace) -> None:
    """What --converter_op_package_lib and --op_package_lib say of the operations that are declared."""
    shapes = getattr(arguments, "converter_op_package_lib", "")
    numbers, own = getattr(arguments, "op_package_lib", ""), getattr(arguments, "own_packages", "")
    if shapes:
        from openqnn.vendor.custom_op_libraries import use_converter_libraries

        use_converter_libraries([path for path in shapes.split(",") if path])
    if numbers:
        from openqnn.qnn.op_package_library import op_package_libraries
        from openqnn.vendor.custom_op_libraries import use_op_package_libraries

        use_op_package_libraries(op_package_libraries(numbers))
    if own:
        from openqnn.api.custom_ops import use_op_packages

        use_op_packages(own)
