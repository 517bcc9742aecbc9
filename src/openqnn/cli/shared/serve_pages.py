"""Serving the viewer's pages on this machine until Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.errors import OutputError

if TYPE_CHECKING:
    from openqnn.viewer.server import Pages, Taker, ViewServer

REDIRECT = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<meta http-equiv="refresh" content="0;url={address}"><title>OpenQNN viewer</title>'
)


def serve_pages(
    pages: Pages,
    port: int,
    browser: bool,
    takes: Taker | None = None,
    opened: Callable[[ViewServer], None] | None = None,
) -> int:
    """Serve until Ctrl-C, which is how it is meant to end. `opened` is told the server before it serves."""
    from openqnn.viewer.server import ViewServer

    try:
        server = ViewServer(pages, port, takes)
    except OSError as error:
        raise OutputError(
            f"port {port} cannot be opened: {error.strerror}", hint="leave --port out"
        ) from error
    if opened is not None:
        opened(server)
    print(f"{server.address}\nCtrl-C ends it.", flush=True)
    with _opened(server.address) if browser else nullcontext():
        try:
            server.serve()
        except KeyboardInterrupt:
            return 0
    return 0


@contextmanager
def _opened(address: str) -> Iterator[None]:
    """The address in the user's browser, by way of a file that only the user may read: the command line of a
    browser, which all users of a machine see, must not hold the token."""
    import tempfile
    import webbrowser
    from html import escape

    with tempfile.TemporaryDirectory(prefix="openqnn-view-") as folder:
        file = Path(folder) / "open.html"
        file.write_text(REDIRECT.format(address=escape(address, quote=True)), encoding="utf-8")
        webbrowser.open(file.as_uri())
        yield
