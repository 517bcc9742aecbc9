"""openqnn <command>. Exit codes: 0 done, 1 the user's problem, 2 usage, 3 ours (with a traceback)."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings
from collections.abc import Sequence

from openqnn.cli import commands
from openqnn.errors import OpenQnnError, UsageError
from openqnn.options.field import add_options

DONE, USER, USAGE, OURS, INTERRUPTED = 0, 1, 2, 3, 130


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="openqnn",
        description="Qualcomm QNN toolchain: convert, check, inspect and run models.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"openqnn {commands.version()}")
    sub = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in commands.COMMANDS:
        p = sub.add_parser(command.name, help=command.doc, description=command.doc, allow_abbrev=False)
        for group in command.groups:
            add_options(p, group)
        p.set_defaults(run=command.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    warnings.showwarning = _show_warning
    try:
        return arguments.run(arguments)
    except UsageError as e:
        return _fail(e, USAGE)
    except OpenQnnError as e:
        return _fail(e, USER)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # the reader went away: nothing more to say
        return DONE
    except Exception:
        traceback.print_exc()
        print("error: this is a bug in openqnn; please report it with the traceback above", file=sys.stderr)
        return OURS


def _fail(error: OpenQnnError, code: int) -> int:
    print(f"error: {error}", file=sys.stderr)
    return code


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
