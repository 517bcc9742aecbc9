"""The viewer on this machine: a server on loopback that answers only who knows the token."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

from openqnn.viewer.page import SERVED_POLICY

HOST = "127.0.0.1"
HOSTS = (HOST, "localhost")

Query: TypeAlias = Mapping[str, Sequence[str]]
SECONDS = 60  # a client that says nothing for so long is let go
HTML = "text/html; charset=utf-8"
JSON = "application/json"
HEADER_POLICY = f"{SERVED_POLICY}; form-action 'self'; frame-ancestors 'none'"  # no page of others around it


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent for an address that is asked for."""

    content: str
    kind: str = HTML


Pages: TypeAlias = Callable[[str, Query], str | Answer | None]
Taker: TypeAlias = Callable[[str, bytes], Answer | None]
LARGEST = 1 << 20  # bytes that may be sent to the server at once


class ViewServer:
    """Serves pages at addresses that hold a token. `pages` gives the HTML of a path, another answer, or
    None; `takes` answers what is sent to one, as JSON."""

    def __init__(self, pages: Pages, port: int = 0, takes: Taker | None = None) -> None:
        self.token = secrets.token_urlsafe(24)
        self._pages, self._takes = pages, takes
        self._server = ThreadingHTTPServer((HOST, port), self._handler())
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self._server.server_port}/?token={self.token}"

    def serve(self) -> None:
        """Answer until `close` or Ctrl-C."""
        self._server.serve_forever()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        token = self.token
        pages, takes = self._pages, self._takes

        class Handler(BaseHTTPRequestHandler):
            timeout = SECONDS

            def do_GET(self) -> None:
                asked = urlsplit(self.path)
                query = parse_qs(asked.query)
                if not self._is_known(query):
                    return
                found = pages(asked.path, query)
                if found is None:
                    self.send_error(404)
                    return
                self._send(found if isinstance(found, Answer) else Answer(found))

            def do_POST(self) -> None:
                asked = urlsplit(self.path)
                if not self._is_known(parse_qs(asked.query)):
                    return
                found = _taken(self, asked.path, takes)
                if isinstance(found, int):
                    self.send_error(found)
                    return
                self._send(found)

            def _is_known(self, query: Query) -> bool:
                """Whether who asks has the token; others are told where it is."""
                host = (self.headers.get("Host") or "").rsplit(":", 1)[0]
                given = query.get("token", [""])[0]
                if host in HOSTS and hmac.compare_digest(given.encode(), token.encode()):
                    return True
                self.send_error(403, "the address that openqnn printed has a token")
                return False

            def _send(self, answer: Answer) -> None:
                page = answer.content.encode("utf-8")
                self.send_response(200)
                self.send_header("Content-Type", answer.kind)
                self.send_header("Content-Length", str(len(page)))
                self.send_header("Content-Security-Policy", HEADER_POLICY)
                self.send_header("X-Content-Type-Options", "nosniff")
                self.send_header("Cache-Control", "no-store")
                self.send_header("Referrer-Policy", "no-referrer")
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: the address with its token is no matter for a log."""

        return Handler


def _taken(request: BaseHTTPRequestHandler, path: str, takes: Taker | None) -> Answer | int:
    """The answer to what was sent, or the number of an error. A form of another page cannot send JSON without
    being asked for leave."""
    if request.headers.get("Content-Type", "").partition(";")[0] != JSON:
        return 415
    size = request.headers.get("Content-Length", "")
    if not size.isdecimal() or int(size) > LARGEST:
        return 413
    found = takes(path, request.rfile.read(int(size))) if takes else None
    return 404 if found is None else found
