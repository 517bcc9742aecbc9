"""Operations that options declare: read before a command runs, whatever command it is."""

from __future__ import annotations

from argparse import Namespace


def declare_ops(arguments: Namespace) -> None:
    """Makes the operations of --custom_ops and --op_package_config known.

    Most commands are given none, and import nothing here.
    """
    files = [
        *(getattr(arguments, "custom_op_config_paths", None) or ()),
        *(getattr(arguments, "custom_ops", None) or ()),
    ]
    if files:
        from openqnn.api.custom_ops import load_custom_ops

        load_custom_ops(*files)
