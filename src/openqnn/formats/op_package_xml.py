"""The XML of op packages: read with every rule checked, and written from the same records."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from openqnn.formats import op_package as words
from openqnn.formats.op_package import Constraint, OpDef, OperandDef, OpPackage, Supplement
from openqnn.formats.xml_lines import XmlElement, read_xml

_ROOT, _LIST, _SUPPLEMENT = "OpDefCollection", "OpDefList", "SupplementalOpDefList"
_OP: Final = (
    "Name", "Description", "Reference", "Input", "Output", "Parameter", "UseDefaultTranslation",
    "SupportedBackend",
)  # fmt: skip
_OPERAND: Final = (
    "Name", "Description", "Mandatory", "Constraint", "Datatype", "Shape", "Default", "Repeated",
    "IsStaticTensor", "Enumeration",
)  # fmt: skip
_ATTRIBUTES: Final = {
    _ROOT: ("PackageName", "Domain", "Version", "UseQHPI"),
    "Reference": ("Source", "Url"),
    "Constraint": ("id", "Type"),
    _SUPPLEMENT: ("Backend",),
}
_BOOLS: Final = {"true": True, "false": False, "1": True, "0": False}
_RESERVED: Final = "qti.aisw"
_NUMBER: Final = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"


def read_op_package(path: str | os.PathLike[str]) -> OpPackage:
    """The package that a file declares; InputError with file, line, what is wrong and how to mend it."""
    return package_of(read_xml(path))


def package_of(root: XmlElement) -> OpPackage:
    if root.tag != _ROOT:
        root.fail(f"the root of an op package is <{_ROOT}>", hint="is it a file of another kind?")
    _only(root, (_LIST, _SUPPLEMENT))
    name = _package_name(root)
    listed = root.find(_LIST)
    if listed is None:
        root.fail(f"<{_LIST}> is missing", hint=f"operations stand in <{_LIST}>")
    _only(listed, ("OpDef",))
    ops = [_op(e) for e in listed.children]
    if not ops:
        listed.fail("it has no <OpDef>", hint="declare at least one operation")
    _unique([(op.name, e) for op, e in zip(ops, listed.children, strict=True)], "operation")
    supplements = [_supplement(e, ops) for e in root.all(_SUPPLEMENT)]
    _unique(
        [(s.backend, e) for s, e in zip(supplements, root.all(_SUPPLEMENT), strict=True)], "supplement for"
    )
    version = root.attributes.get("Version", "1.0")
    if not re.fullmatch(r"\d+(\.\d+){0,2}", version):
        root.fail(f"Version={version!r} is no version", hint='Version="1.0"')
    qhpi = _bool(root, root.attributes.get("UseQHPI", "false"), "UseQHPI")
    made = OpPackage(
        name, tuple(ops), tuple(supplements), root.attributes.get("Domain", "aisw"), version, qhpi
    )
    _check_specific(made, listed)
    return made


def _package_name(root: XmlElement) -> str:
    name = root.attributes.get("PackageName", "")
    if not name:
        root.fail("the attribute PackageName is missing", hint=f'<{_ROOT} PackageName="MyPackage" ...>')
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name):
        root.fail(f"PackageName={name!r}: letters, digits, '_' and '.' only, and no digit first")
    if name == _RESERVED:
        root.fail(f"PackageName={name!r} is QNN's own package", hint="choose another name")
    return name


# -- operations ----------------------------------------------------------------------------------------------


def _op(e: XmlElement) -> OpDef:
    _only(e, _OP)
    _in_order(e, _OP)
    name = _identifier(e)
    inputs = [_operand(i, "Input") for i in e.all("Input")]
    outputs = [_operand(o, "Output") for o in e.all("Output")]
    params = [_operand(p, "Parameter") for p in e.all("Parameter")]
    for kind, found in (("Input", inputs), ("Output", outputs)):
        if not found:
            e.fail(f"operation '{name}' has no <{kind}>")
    tensors = [*e.all("Input"), *e.all("Output"), *e.all("Parameter")]
    _unique([(t.value("Name"), t) for t in tensors], f"operand of '{name}'")
    for kind, found in (("Input", inputs), ("Output", outputs)):
        early = next((i for i, o in enumerate(found[:-1]) if o.repeated), None)
        if early is not None:
            e.all(kind)[early].fail("only the last may be repeated", hint="move it to the end")
    said = e.find("UseDefaultTranslation")
    default = None if said is None else _bool(said, said.text)
    description, code = _description(e)
    return OpDef(
        name, tuple(inputs), tuple(outputs), tuple(params), description, code, _reference(e), default,
        _backends(e, name),
    )  # fmt: skip


def _backends(e: XmlElement, name: str) -> tuple[str, ...]:
    found = e.all("SupportedBackend")
    if not found:
        e.fail(f"operation '{name}' names no <SupportedBackend>", hint=f"one of {', '.join(words.BACKENDS)}")
    for item in found:
        _one_of(item, item.text, words.BACKENDS, "backend")
    _unique([(item.text, item) for item in found], "backend")
    return tuple(item.text for item in found)


def _reference(e: XmlElement) -> tuple[str, str]:
    found = e.find("Reference")
    if found is None:
        return "", ""
    _only(found, ())
    return found.attributes.get("Source", ""), found.attributes.get("Url", "")


def _description(e: XmlElement) -> tuple[str, str]:
    found = e.find("Description")
    if found is None:
        return "", ""
    if not found.children:
        return " ".join(found.text.split()), ""
    _only(found, ("Content", "Code"))
    content, code = found.find("Content"), found.find("Code")
    return " ".join(content.text.split()) if content else "", code.text if code else ""


# -- inputs, outputs, parameters -----------------------------------------------------------------------------


def _operand(e: XmlElement, kind: str, *, whole: bool = True) -> OperandDef:
    """In a supplement not everything has to be said again."""
    _only(e, _OPERAND)
    name = e.value("Name")
    if not re.fullmatch(r"[A-Za-z_]\w*(\[\d+\])?", name):
        e.fail(f"{name!r} is no name", hint="letters, digits and '_', and perhaps [0] at the end")
    datatypes = [d.text for d in e.all("Datatype")]
    for item in e.all("Datatype"):
        _one_of(item, item.text, words.DATATYPES, "data type")
    _unique([(item.text, item) for item in e.all("Datatype")], "data type")
    if whole and not datatypes:
        e.fail(f"'{name}' has no <Datatype>", hint=f"such as <Datatype>{words.PREFIX}FLOAT_32</Datatype>")
    rank, layout, shape = _shape(e, name, whole)
    _check_place(e, kind)
    mandatory = _bool_of(e, "Mandatory", None if whole else True)
    made = OperandDef(
        name, _description(e)[0], mandatory, tuple(datatypes), rank, layout,
        shape, tuple(_constraint(c) for c in e.all("Constraint")), e.value("Default", ""),
        _bool_of(e, "Repeated", False), _bool_of(e, "IsStaticTensor", False),
        _enumeration(e.find("Enumeration")),
    )  # fmt: skip
    if made.default:
        _check_default(e, made)
    return made


def _check_place(e: XmlElement, kind: str) -> None:
    """Some elements are for inputs, outputs or parameters only."""
    places = {
        "Repeated": ("Input", "Output"),
        "IsStaticTensor": ("Input",),
        "Enumeration": ("Parameter",),
        "Default": ("Input", "Parameter"),
    }
    for child in e.children:
        if kind not in places.get(child.tag, (kind,)):
            child.fail(f"it does not apply to <{kind}>", hint="leave it out")


def _shape(e: XmlElement, name: str, whole: bool) -> tuple[str, str, str]:
    found = e.find("Shape")
    if found is None:
        if whole:
            e.fail(f"'{name}' has no <Shape>", hint="<Shape><Rank>4D</Rank></Shape>")
        return "ND", "", ""
    _only(found, ("Rank", "Layout", "Text"))
    rank, layout = found.value("Rank"), found.value("Layout", "")
    _one_of(found.find("Rank") or found, rank, words.RANKS, "rank")
    if layout:
        _one_of(found.find("Layout") or found, layout, words.LAYOUTS, "layout")
        axes = len(layout) if layout.startswith("N") and layout != "NONTRIVIAL" else None
        if axes and rank[:-1].isdigit() and axes != int(rank[:-1]):
            found.fail(f"layout {layout} has {axes} axes, rank {rank} does not", hint=f"<Rank>{axes}D</Rank>")
    text = found.find("Text")
    return rank, layout, text.text if text else ""


def _constraint(e: XmlElement) -> Constraint:
    _only(e, ())
    for name in ("id", "Type"):
        if name not in e.attributes:
            e.fail(
                f"the attribute {name} is missing", hint='<Constraint id="0" Type="Shape">...</Constraint>'
            )
    return Constraint(e.attributes["id"], e.attributes["Type"], " ".join(e.text.split()))


def _enumeration(e: XmlElement | None) -> tuple[str, ...]:
    if e is None:
        return ()
    _only(e, ("Enum",))
    if not e.children:
        e.fail("it has no <Enum>", hint="<Enum>MEMBER</Enum> for each member")
    empty = next((c for c in e.children if not c.text), None)
    if empty is not None:
        empty.fail("it is empty")
    _unique([(c.text, c) for c in e.children], "member")
    return tuple(c.text for c in e.children)


def _check_default(e: XmlElement, made: OperandDef) -> None:
    """A default is a member, its number, or numbers of the parameter's type."""
    place, text = e.find("Default") or e, made.default
    if made.mandatory:
        place.fail(
            f"'{made.name}' is mandatory, and a default never counts", hint="<Mandatory>false</Mandatory>"
        )
    if made.enumeration and text not in made.enumeration:
        if not (text.isdigit() and int(text) < len(made.enumeration)):
            place.fail(f"{text!r} is no member", hint=f"one of {', '.join(made.enumeration)}")
        return
    if made.enumeration or made.datatypes == (words.BACKEND_SPECIFIC,):
        return
    _check_numbers(place, text, made)


def _check_numbers(place: XmlElement, text: str, made: OperandDef) -> None:
    kinds = {t.removeprefix(words.PREFIX).split("_")[0] for t in made.datatypes}
    single = text.lower() in _BOOLS if kinds == {"BOOL"} else _is_number(text, kinds)
    if made.is_scalar and not single:
        place.fail(f"{text!r} is no {' or '.join(made.datatypes)}", hint="<Default>0</Default>")
    if not made.is_scalar and not all(_is_number(t, kinds) for t in re.split(r"[\s,\[\]{}]+", text) if t):
        place.fail(f"{text!r} are no numbers", hint="<Default>[1, 2]</Default>")


def _is_number(text: str, kinds: set[str]) -> bool:
    whole = not kinds & {"FLOAT", "BFLOAT"} and not any(k.endswith("FIXED") for k in kinds)
    sign = r"\+?" if kinds == {"UINT"} else r"[-+]?"
    return re.fullmatch(rf"{sign}\d+" if whole else _NUMBER, text) is not None


# -- supplements ---------------------------------------------------------------------------------------------


def _supplement(e: XmlElement, ops: Sequence[OpDef]) -> Supplement:
    _only(e, ("SupportedOps", "SupplementalOpDef"))
    backend = e.attributes.get("Backend", "")
    if not backend:
        e.fail("the attribute Backend is missing", hint=f'<{_SUPPLEMENT} Backend="HTP">')
    _one_of(e, backend, words.BACKENDS, "backend")
    known = {op.name: op for op in ops}
    listed, supported = e.find("SupportedOps"), list[str]()
    if listed is not None:
        _only(listed, ("OpName",))
        for item in listed.children:
            _one_of(item, item.text, tuple(known), "operation")
            supported.append(item.text)
        _unique([(c.text, c) for c in listed.children], "operation")
    made = [_supplemental(s, known) for s in e.all("SupplementalOpDef")]
    _unique([(m.name, s) for m, s in zip(made, e.all("SupplementalOpDef"), strict=True)], "operation")
    return Supplement(backend, tuple(supported), tuple(made))


def _supplemental(e: XmlElement, known: dict[str, OpDef]) -> OpDef:
    _only(e, ("Name", "Input", "Output", "Parameter"))
    name = _identifier(e)
    _one_of(e.find("Name") or e, name, tuple(known), "operation")
    found: list[tuple[OperandDef, ...]] = []
    op = known[name]
    for kind, declared in (("Input", op.inputs), ("Output", op.outputs), ("Parameter", op.params)):
        items = [_operand(i, kind, whole=False) for i in e.all(kind)]
        for item, place in zip(items, e.all(kind), strict=True):
            _one_of(place, item.name, tuple(d.name for d in declared), f"{kind.lower()} of '{name}'")
        found.append(tuple(items))
    return OpDef(name, found[0], found[1], found[2], backends=())


def _check_specific(package: OpPackage, listed: XmlElement) -> None:
    """What is left to backends must be said by each that supports the operation."""
    for op, e in zip(package.ops, listed.children, strict=True):
        for operand in (*op.inputs, *op.outputs, *op.params):
            for backend in op.backends:
                left = package.datatypes(op.name, operand.name, backend) == (words.BACKEND_SPECIFIC,)
                if left and operand.datatypes == (words.BACKEND_SPECIFIC,):
                    e.fail(
                        f"'{operand.name}' of '{op.name}' is {words.BACKEND_SPECIFIC}, and no supplement says"
                        f" its data types on {backend}",
                        hint=f'<{_SUPPLEMENT} Backend="{backend}"> with a <SupplementalOpDef>',
                    )


# -- rules that all elements share ---------------------------------------------------------------------------


def _only(e: XmlElement, tags: Sequence[str]) -> None:
    """Children and attributes of known names, and no loose text between elements."""
    known = _ATTRIBUTES.get(e.tag, ())
    for name in e.attributes:
        plain = name.startswith(("xmlns", "xsi:"))
        if name not in known and not plain:
            e.fail(f"it has no attribute '{name}'", hint=_near(name, known))
    for child in e.children:
        if child.tag not in tags:
            child.fail(f"not known in <{e.tag}>", hint=_near(child.tag, tags))
    if tags and e.text:
        e.fail(f"loose text {e.text[:30]!r} between its elements", hint="put it into an element or a comment")


def _in_order(e: XmlElement, tags: Sequence[str]) -> None:
    last = 0
    for child in e.children:
        place = tags.index(child.tag)
        if place < last:
            child.fail(f"it stands behind <{tags[last]}>", hint=f"the order is {', '.join(tags)}")
        last = place


def _identifier(e: XmlElement) -> str:
    name = e.value("Name")
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        (e.find("Name") or e).fail(f"{name!r} is no name", hint="letters, digits and '_'; no digit first")
    return name


def _unique(found: Sequence[tuple[str, XmlElement]], what: str) -> None:
    seen: dict[str, int] = {}
    for name, e in found:
        if name in seen:
            e.fail(f"{what} '{name}' is declared twice", hint=f"the first stands in line {seen[name]}")
        seen[name] = e.line


def _bool_of(e: XmlElement, tag: str, default: bool | None) -> bool:
    found = e.find(tag)
    if found is None:
        if default is None:
            e.fail(f"<{tag}> is missing", hint=f"<{tag}>true</{tag}>")
        return default
    return _bool(found, found.text)


def _bool(e: XmlElement, text: str, what: str = "") -> bool:
    if text.lower() not in _BOOLS:
        e.fail(f"{what + ': ' if what else ''}{text!r} is neither true nor false")
    return _BOOLS[text.lower()]


def _one_of(e: XmlElement, text: str, known: Sequence[str], what: str) -> None:
    if text not in known:
        e.fail(f"{text!r} is no {what}", hint=_near(text, known))


def _near(text: str, known: Sequence[str]) -> str:
    near = get_close_matches(text, known, 2, 0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known: {', '.join(known[:12])}" if known else "leave it out"


# -- writing -------------------------------------------------------------------------------------------------


def print_op_package(package: OpPackage) -> str:
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', *_package_lines(package), ""])


def _package_lines(package: OpPackage) -> Iterator[str]:
    more = ' UseQHPI="true"' if package.qhpi else ""
    yield (
        f"<{_ROOT} PackageName={quoteattr(package.name)} Domain={quoteattr(package.domain)}"
        f" Version={quoteattr(package.version)}{more}>"
    )
    yield from _wrapped(_LIST, (line for op in package.ops for line in _op_lines(op)))
    for s in package.supplements:
        body: list[str] = []
        if s.supported:
            body += _wrapped("SupportedOps", [_leaf("OpName", name) for name in s.supported])
        for op in s.ops:
            body += _wrapped("SupplementalOpDef", [_leaf("Name", op.name), *_operand_lines(op, whole=False)])
        yield from _wrapped(_SUPPLEMENT, body, f" Backend={quoteattr(s.backend)}")
    yield f"</{_ROOT}>"


def _op_lines(op: OpDef) -> Iterator[str]:
    body = [_leaf("Name", op.name)]
    if op.description or op.code:
        parts = [_leaf("Content", op.description)] if op.description else []
        body += _wrapped("Description", [*parts, *([_leaf("Code", op.code)] if op.code else [])])
    if any(op.reference):
        source, url = map(quoteattr, op.reference)
        body.append(f"<Reference Source={source} Url={url}/>")
    body += _operand_lines(op)
    if op.use_default_translation is not None:
        body.append(_leaf("UseDefaultTranslation", str(op.use_default_translation).lower()))
    body += [_leaf("SupportedBackend", backend) for backend in op.backends]
    return _wrapped("OpDef", body)


def _operand_lines(op: OpDef, *, whole: bool = True) -> list[str]:
    groups = (("Input", op.inputs), ("Output", op.outputs), ("Parameter", op.params))
    return [line for kind, found in groups for d in found for line in _wrapped(kind, _one_operand(d, whole))]


def _one_operand(d: OperandDef, whole: bool) -> Iterator[str]:
    yield _leaf("Name", d.name)
    if d.description:
        yield from _wrapped("Description", [_leaf("Content", d.description)])
    if whole or not d.mandatory:
        yield _leaf("Mandatory", str(d.mandatory).lower())
    for c in d.constraints:
        yield f"<Constraint id={quoteattr(c.id)} Type={quoteattr(c.kind)}>{escape(c.text)}</Constraint>"
    yield from (_leaf("Datatype", t) for t in d.datatypes)
    yield from _shape_lines(d, whole)
    if d.default:
        yield _leaf("Default", d.default)
    flags = {"Repeated": d.repeated, "IsStaticTensor": d.static}
    yield from (_leaf(tag, "true") for tag, holds in flags.items() if holds)
    yield from _wrapped("Enumeration", [_leaf("Enum", m) for m in d.enumeration]) if d.enumeration else ()


def _shape_lines(d: OperandDef, whole: bool) -> Iterator[str]:
    if whole or (d.rank, d.layout, d.shape) != ("ND", "", ""):
        shape = [("Rank", d.rank), ("Layout", d.layout), ("Text", d.shape)]
        yield from _wrapped("Shape", [_leaf(tag, text) for tag, text in shape if text])


def _leaf(tag: str, text: str) -> str:
    return f"<{tag}>{escape(text)}</{tag}>"


def _wrapped(tag: str, body: Iterator[str] | Sequence[str], attributes: str = "") -> Iterator[str]:
    yield f"<{tag}{attributes}>"
    yield from ("  " + line for line in body)
    yield f"</{tag}>"
