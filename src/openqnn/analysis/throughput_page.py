"""The result of a throughput run as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from openqnn.analysis.plain_page import line_plot, note, page, table

COLUMNS = ("mean", "p50", "p90", "p99", "p99.9", "max")


def throughput_page(report: Mapping[str, Any]) -> str:
    """Tables and plots of a record that `throughput_report` made."""
    threads = report["threads"]
    verdict = report["stability"]
    mark = {"stable": "good", "unstable": "bad"}.get(verdict, "")
    parts = [
        f"<p>{escape(report['config'])}: {report['iterations']} iteration(s), {report['seconds']:.2f} s,"
        f' <span class="{mark}">{verdict}</span></p>',
        *(note(text) for text in report["environment"]["remarks"]),
        *_scenario(report.get("scenario")),
        "<h2>Latency in microseconds</h2>",
        table(
            ("thread", "model", "backend", "executions", "per second", *COLUMNS, "verdict"),
            [
                (
                    t["thread"], t["model"], t["backend"], t["executions"], t["per_second"],
                    *(t["latency_us"].get(name) for name in COLUMNS), t["stability"]["verdict"],
                )
                for t in threads
            ],
        ),
        "<h2>Distribution</h2>",
        line_plot(
            {t["thread"]: [(at, share) for at, share in t["curve"]] for t in threads},
            ("latency in microseconds", "share of executions"),
            log=(True, False),
        ),
        "<h2>Over time</h2>",
        line_plot({t["thread"]: _course(t["course"]) for t in threads}, ("seconds", "mean latency in us")),
        "<h2>Where the time goes, mean in microseconds</h2>",
        table(
            ("thread", "queue", "copy", "execute", "overhead", "initialisation (ms)"),
            [
                (
                    t["thread"], t["queue_us"].get("mean"), t["copy_us"].get("mean"),
                    t["execute_us"].get("mean"), t["overhead_us"], t["initialisation_ms"],
                )
                for t in threads
            ],
        ),
        *_environment(report),
    ]  # fmt: skip
    return page("Throughput", parts)


def _course(course: Mapping[str, Any]) -> list[tuple[float, float]]:
    width = course["slot_seconds"]
    points = zip(course["executions"], course["mean_us"], strict=True)
    return [((i + 0.5) * width, mean) for i, (count, mean) in enumerate(points) if count]


def _scenario(scenario: Mapping[str, Any] | None) -> list[str]:
    if scenario is None:
        return []
    rows = [
        (
            model,
            "valid" if o["valid"] else "invalid",
            o["metric"],
            o["value"],
            o["unit"],
            o["queries"],
            o["reason"],
        )
        for model, o in scenario["outcomes"].items()
    ]
    head = ("model", "run", "metric", "value", "unit", "queries", "reason")
    return [f"<h2>Scenario {escape(scenario['kind'])}</h2>", table(head, rows)]


def _environment(report: Mapping[str, Any]) -> list[str]:
    found = report["environment"]
    memory = report["memory"]
    rows = [
        (name, f"{b['library']} {b['build']} {b.get('soc', '')}") for name, b in found["backends"].items()
    ]
    rows += [
        ("processor", f"{found['processor']}, {found['cores']} cores, governor {found['governor']}"),
        ("load average", ", ".join(map(str, found["load_average"]))),
        ("memory", f"{memory['before_bytes'] >> 20} MB before, {memory['after_bytes'] >> 20} MB after"),
        ("open files", f"{memory['handles_before']} before, {memory['handles_after']} after"),
        ("openqnn", found["openqnn"]),
    ]
    return ["<h2>Environment</h2>", table(("what", "value"), rows)]
