"""Groups of nodes, places in rows and columns, and the scripts of the page in one."""

from __future__ import annotations

import json
import random
import re
import time

import pytest

from openqnn.viewer.bundle_scripts import IMPORT, bundle_scripts, page_script
from openqnn.viewer.find_repeats import Repeat, find_repeats
from openqnn.viewer.from_onnx import view_from_onnx
from openqnn.viewer.group_records import group_records
from openqnn.viewer.group_tree import Group, all_groups, group_tree
from openqnn.viewer.layout import layout
from openqnn.viewer.match_views import match_views, with_scopes
from openqnn.viewer.view import View, ViewNode, ViewTensor
from tests.models.fetch import model_path

NAMED = "effword_fp32"  # torch's exporter names nodes by modules
FLAT = "smart_turn_qdq"  # a transformer without module paths, with four equal layers


def chain(names: list[str], ops: list[str]) -> View:
    """Nodes in a row."""
    nodes = [
        ViewNode(name, op, inputs=(ViewTensor(f"t{i}", ""),), outputs=(ViewTensor(f"t{i + 1}", ""),))
        for i, (name, op) in enumerate(zip(names, ops, strict=True))
    ]
    return View("chain", "test", tuple(nodes))


def groups_of(view: View) -> dict[str, Group]:
    return {group.path: group for group in all_groups(group_tree(view))}


def test_nodes_stand_below_what_they_read() -> None:
    found = layout(6, [(0, 1), (1, 2), (0, 2), (3, 4)])
    rows = [row for _, row in found.places]
    assert rows[0] < rows[1] < rows[2] and rows[3] < rows[4]
    assert len(set(found.places)) == 6


def test_lines_go_round_what_stands_between() -> None:
    found = layout(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    ((column, first, last),) = found.routes[0, 3]
    assert (first, last) == (1, 2)
    assert all(abs(column - found.places[node][0]) > 0.3 for node in (1, 2))


def test_what_only_feeds_a_node_stands_beside_and_pushes_nothing_aside() -> None:
    """Six layers with a dequantized weight and bias each stay straight, as they are without those."""
    chain = [(i, i + 1) for i in range(6)]
    fed = [(7 + 2 * i + k, i + 1) for i in range(6) for k in range(2)]
    found = layout(20, chain + fed, ports=(0,))
    assert len({column for column, _ in found.places[:7]}) == 1
    assert all(found.places[a][1] == found.places[b][1] - 1 for a, b in fed)
    assert len(set(found.places[:19])) == 19
    skipped = layout(20, [*chain, *fed, (1, 4)], ports=(0,))
    ((column, first, last),) = skipped.routes[1, 4]
    beside = [x for x, row in skipped.places[:19] if first <= row <= last]
    assert all(abs(x - column) > 0.6 for x in beside)


def test_cycles_of_groups_have_places() -> None:
    found = layout(5, [(0, 1), (1, 2), (2, 0), (2, 3), (4, 0)])
    assert len(set(found.places)) == 5 and all(row >= 0 for _, row in found.places)


def test_places_are_computed_in_time() -> None:
    picked = random.Random(0)
    edges = [(i, i + 1) for i in range(24_999)]
    edges += [(i, i + picked.randint(2, 12)) for i in range(0, 24_900, 5)]
    start = time.monotonic()
    assert len(layout(25_000, edges).places) == 25_000
    assert time.monotonic() - start < 20


def test_module_paths_become_groups() -> None:
    found = groups_of(view_from_onnx(model_path(NAMED)))
    assert found["feature_network/layer3"].size == 43
    repeated = found["feature_network/layer3/layer3.1 to layer3.5"]
    assert repeated.repeat == 5 and repeated.size == 35


def test_blocks_are_found_without_names() -> None:
    view = view_from_onnx(model_path(FLAT))
    (outer,) = [group for group in all_groups(group_tree(view)) if group.repeat]
    assert outer.repeat == 4
    ops = [[view.nodes[i].op for i in block.items if isinstance(i, int)] for block in all_groups(outer)][1:]
    assert len(ops) == 4 and all(each == ops[0] for each in ops)
    assert ops[0].count("Softmax") == 1


def test_repeats_cover_most() -> None:
    assert find_repeats(list("xabcabcabcabcy")) == [Repeat(1, 3, 4)]
    assert find_repeats(["Relu"] * 50) == []


def test_groups_of_one_node_are_none() -> None:
    found = groups_of(chain(["a/b/c", "a/d/e", "f/g/h/i", "f/g/h/j"], list("PQRS")))
    assert set(found) == {"", "a", "f/g/h"}
    assert found["f/g/h"].name == "f/g/h"


def test_every_edge_is_a_line_on_each_level() -> None:
    view = view_from_onnx(model_path(NAMED))
    edges = view.edges()
    records = group_records(group_tree(view), len(view.nodes), edges)
    parents = {item: index for index, record in enumerate(records) for item in record["items"]}
    assert set(range(len(view.nodes))) <= set(parents)
    lines = [{(a, b) for a, b, *_ in record["lines"]} for record in records]
    for a, b, _ in edges:
        if parents[a] == parents[b]:
            held = records[parents[a]]["items"]
            assert (held.index(a), held.index(b)) in lines[parents[a]]
        else:
            for node, side in ((a, 1), (b, 0)):
                held, group = records[parents[node]]["items"], lines[parents[node]]
                ends = {pair[side] for pair in group if pair[1 - side] == held.index(node)}
                assert ends, (node, side)


def test_other_panes_have_the_same_groups() -> None:
    first = chain(["m/a", "m/b", "c"], list("PQR"))
    second = View("second", "other", tuple(ViewNode(f"n{i}", "P", keys=(f"t{i + 1}",)) for i in range(3)))
    first = View(
        "first", "test", tuple(ViewNode(n.name, n.op, keys=(n.outputs[0].name,)) for n in first.nodes)
    )
    assert [node.scope for node in with_scopes([first, second])[1].nodes] == ["m", "m", ""]


def test_nodes_that_went_into_others_lead_there() -> None:
    first = chain(["a", "b"], ["Conv", "Relu"])
    first = View("f", "ONNX", tuple(_keyed(node) for node in first.nodes))
    second = View("s", "QNN graph", (ViewNode("a", "Conv2d", keys=("t2",)),))
    found = match_views(first, second)
    assert found["pairs"] == [(1, 0)] and found["links"] == [(0, 0)]


def _keyed(node: ViewNode) -> ViewNode:
    return ViewNode(
        node.name, node.op, inputs=node.inputs, outputs=node.outputs, keys=(node.outputs[0].name,)
    )


def test_scripts_are_put_together_in_order() -> None:
    modules = {
        "main": 'import { b } from "./b.js";\nb();\n',
        "b": 'import { a } from "./a.js";\nexport const b = () => a;\n',
        "a": "export const a = 1;\nconst own = 2;\n",
    }
    text = bundle_scripts("main", modules.__getitem__)
    assert text.index("const $a") < text.index("const $b") < text.index("const $main")
    assert "import" not in text and "export" not in text
    with pytest.raises(ValueError, match="a -> b -> a"):
        bundle_scripts(
            "a", {"a": 'import { b } from "./b.js";\n', "b": 'import { a } from "./a.js";\n'}.__getitem__
        )


def test_no_import_is_left_in_the_page() -> None:
    assert not re.search(r"^\s*(import|export)\b", page_script(), re.M)
    assert IMPORT.search('import { a, b } from "./elements.js";\n')


def test_records_are_json() -> None:
    view = chain([f"n{i}" for i in range(30)], list("abcdef") * 5)
    json.dumps(group_records(group_tree(view), 30, view.edges()))


def test_all_nodes_are_in_the_compiled_graph() -> None:
    first = chain(["a", "b"], ["Conv2d", "Relu"])
    second = View("c", "context binary", (ViewNode("x", "Input"), ViewNode("graph", "Compiled")))
    found = match_views(first, second)
    assert found["left"] == {} and found["right"] == {}
    assert found["links"] == [(0, 1), (1, 1)]
    assert match_views(second, first)["links"] == [(1, 0), (1, 1)]
