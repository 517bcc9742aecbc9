"""Serving the viewer's pages on this machine until Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openqnn.errors import OutputError

if TYPE_CHECKING:
    from openqnn.viewer.server import Pages


def serve_pages(pages: Pages, port: int, browser: bool) -> int:
    """Serve until Ctrl-C, which is how it is meant to end."""
    import webbrowser

    from openqnn.viewer.server import ViewServer

    try:
        server = ViewServer(pages, port)
    except OSError as error:
        raise OutputError(
            f"port {port} cannot be opened: {error.strerror}", hint="leave --port out"
        ) from error
    print(f"{server.address}\nCtrl-C ends it.", flush=True)
    if browser:
        webbrowser.open(server.address)
    try:
        server.serve()
    except KeyboardInterrupt:
        return 0
    return 0
