"""The pages of `qnn-netron`: start, models of a folder, the form of a comparison, its jobs and its result."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from openqnn.analysis.palette import PALETTE
from openqnn.errors import OpenQnnError
from openqnn.vendor.trust import trusting
from openqnn.viewer.diff_runs.diff_run import DiffRun, ToolCommand, cancel_run, finished_runs, start_run
from openqnn.viewer.diff_runs.files_to_open import files_to_open
from openqnn.viewer.diff_runs.job_pool import DONE, JobPool
from openqnn.viewer.diff_runs.result_views import result_views
from openqnn.viewer.diff_runs.run_config import (
    FORMAT,
    check_config,
    load_config,
    read_config,
    save_config,
)
from openqnn.viewer.diff_runs.run_fields import (
    ARCHITECTURES,
    DEVICE_RUNTIMES,
    HOST,
    HOST_RUNTIMES,
    ON_DEVICE,
    SECTIONS,
    USE_CASES,
)
from openqnn.viewer.folder_pages import FolderPages
from openqnn.viewer.page import SERVED_POLICY, html_page
from openqnn.viewer.server import JSON, Answer, Query, ViewServer

MOST: Final = 2000  # files that the form suggests
SUGGESTED: Final = (".json", ".cpp", ".bin", ".txt")


class NetronPages:
    """What the server of `qnn-netron` answers. Runs are kept as long as it serves."""

    def __init__(self, folder: Path, tool: ToolCommand, run_code: bool = False) -> None:
        self.folder, self.tool, self.run_code = folder, tool, run_code
        self.pool, self.runs = JobPool(), list[DiffRun]()
        self.opener = FolderPages(files_to_open(folder))
        self._server: ViewServer | None = None
        self._lock = threading.Lock()

    def __call__(self, path: str, query: Query) -> str | Answer | None:
        """The answer to an address; a context of its own, since every request has a thread of its own."""
        with trusting(self.run_code):
            try:
                return self._page(path, query)
            except OpenQnnError as error:
                return self._start(str(error))

    def _page(self, path: str, query: Query) -> str | Answer | None:
        if path == "/":
            return self._start()
        if path == "/diff":
            return _filled("diff.html", "QNN Netron: Diff", "diff.js", self._form())
        if path == "/runs":
            return _json({"runs": [run.record() for run in self.runs]})
        if path == "/result":
            return self._result(query)
        return self.opener(path, query)

    def take(self, path: str, body: bytes) -> Answer | None:
        """The answer to what a page sends."""
        handlers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "/run": self._run, "/cancel": self._cancel, "/save": self._save, "/load": self._load,
            "/quit": self._quit,
        }  # fmt: skip
        if path not in handlers:
            return None
        try:
            sent = json.loads(body)
            return _json(handlers[path](sent if isinstance(sent, dict) else {}))
        except (ValueError, RecursionError):
            return _json({"error": "this is no JSON"})
        except OpenQnnError as error:
            return _json({"error": str(error)})

    def ends_with(self, server: ViewServer) -> None:
        """The server that Quit ends."""
        self._server = server

    def close(self) -> None:
        self.pool.close()

    # -- pages -----------------------------------------------------------------------------------------------

    def _start(self, problem: str = "") -> str:
        self.opener.files = files_to_open(self.folder)  # what is there now
        rows = [
            {"number": i, "name": str(file.relative_to(self.folder)), "bytes": file.stat().st_size}
            for i, file in enumerate(self.opener.files)
        ]
        data = {"folder": str(self.folder), "files": rows, "recent": self._recent()}
        data |= {"problem": problem} if problem else {}
        return _filled("start.html", "QNN Netron", "start.js", data)

    def _recent(self) -> list[dict[str, Any]]:
        """Comparisons of this server, and those that earlier ones left in the folder."""
        found = finished_runs(self.folder)
        return [
            {"number": i, "name": str(path.parent.relative_to(self.folder))} for i, path in enumerate(found)
        ]

    def _form(self) -> dict[str, Any]:
        places = sorted(p for p in self.folder.rglob("*") if p.suffix in SUGGESTED and p.is_file())[:MOST]
        return {
            "folder": str(self.folder), "uses": list(USE_CASES),
            "sections": [
                {"title": s.title, "uses": list(s.uses), "fields": [f.record() for f in s.fields]}
                for s in SECTIONS
            ],
            "files": [str(p.relative_to(self.folder)) for p in places],
            "saved": [str(p.relative_to(self.folder)) for p in places if _is_config(p)],
            "runtimes": {HOST: list(HOST_RUNTIMES), ON_DEVICE: list(DEVICE_RUNTIMES)},
            "architectures": ARCHITECTURES,
        }  # fmt: skip

    def _result(self, query: Query) -> str | None:
        """A comparison of this server by its number, or an earlier one by its place among the recent ones."""
        number = next((t for t in query.get("run", []) if t.isdecimal() and len(t) < 6), "")
        recent = next((t for t in query.get("recent", []) if t.isdecimal() and len(t) < 6), "")
        found = finished_runs(self.folder)
        if number and int(number) < len(self.runs) and self.runs[int(number)].state == DONE:
            return html_page(result_views(self.runs[int(number)].result), home=True)
        if recent and int(recent) < len(found):
            return html_page(result_views(found[int(recent)]), home=True)
        return None

    # -- what is sent ----------------------------------------------------------------------------------------

    def _run(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        config, problems = check_config(_fields(sent), self.folder)
        if problems:
            return {"problems": problems}
        with self._lock:
            run = start_run(len(self.runs), config, self.pool, self.tool)
            self.runs.append(run)
        return {"run": run.record()}

    def _cancel(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        number, job = sent.get("run"), sent.get("job")
        if not isinstance(number, int) or not 0 <= number < len(self.runs):
            return {"error": "there is no such run"}
        run = self.runs[number]
        if isinstance(job, int) and 0 <= job < len(run.jobs):
            self.pool.cancel(run.jobs[job])
        else:
            cancel_run(run, self.pool)
        return {"run": run.record()}

    def _save(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        config, problems = check_config(_fields(sent), self.folder)
        told = {name: text for name, text in problems.items() if name in ("use_case", "save")}
        if not config["save"] and not told:
            told = {"save": "Save Run Configurations is needed: a file or folder to keep the fields in"}
        if told:
            return {"problems": told}
        save_config(config, Path(config["save"]))
        return {"saved": config["save"]}

    def _load(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """A configuration by its place in the folder, or the text of one that the browser read."""
        if isinstance(text := sent.get("text"), str):
            return {"fields": read_config(text, "the file")}
        path = (self.folder / str(sent.get("path", ""))).resolve()
        if not path.is_relative_to(self.folder):
            return {"error": f"this is outside of {self.folder}"}
        return {"fields": load_config(path)}

    def _quit(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self.close()
        if self._server is not None:
            threading.Timer(0.2, self._server.close).start()
        return {"quit": True}


def _fields(sent: Mapping[str, Any]) -> dict[str, str]:
    given = sent.get("fields")
    known = given.items() if isinstance(given, dict) else ()
    return {str(name): value for name, value in known if isinstance(value, str)}


def _is_config(path: Path) -> bool:
    """Whether a file begins as a saved configuration does."""
    if path.suffix != ".json":
        return False
    with path.open("rb") as file:
        return FORMAT.encode() in file.read(64)


def _json(content: Mapping[str, Any]) -> Answer:
    return Answer(json.dumps(content), JSON)


def _filled(page: str, title: str, script: str, data: Mapping[str, Any]) -> str:
    text = json.dumps(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    body = _static(page)
    for name, content in (
        ("POLICY", SERVED_POLICY), ("TITLE", escape(title)), ("STYLE", PALETTE + _static("netron.css")),
        ("SCRIPT", _static("common.js") + _static(script)), ("DATA", text),
    ):  # fmt: skip
        body = body.replace(f"@@{name}@@", content, 1)
    return body


def _static(name: str) -> str:
    return files("openqnn.viewer").joinpath("static", "netron", name).read_text(encoding="utf-8")
