"""The XML of op packages: all constructs parse and print back equal, and every mistake has a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from openqnn.errors import InputError
from openqnn.formats.op_package import OpPackage
from openqnn.formats.op_package_xml import print_op_package, read_op_package

XML = """<?xml version="1.0" encoding="UTF-8"?>
<!-- a comment -->
<OpDefCollection PackageName="my.Package" Domain="aisw" Version="1.0" UseQHPI="true">
  <OpDefList>
    <OpDef>
      <Name>Blend</Name>
      <Description><Content>Blends &lt;images&gt;.</Content><Code>y = a + b</Code></Description>
      <Reference Source="a paper" Url="https://example.org/a?b&amp;c"/>
      <Input>
        <Name>in[0]</Name>
        <Description><Content>an image</Content></Description>
        <Mandatory>true</Mandatory>
        <Constraint id="0" Type="Shape">as large as the other</Constraint>
        <Datatype>BACKEND_SPECIFIC</Datatype>
        <Shape><Rank>4D</Rank><Layout>NHWC</Layout><Text>[N, H, W, C]</Text></Shape>
      </Input>
      <Input>
        <Name>table</Name>
        <Mandatory>false</Mandatory>
        <Datatype>QNN_DATATYPE_FLOAT_32</Datatype>
        <Shape><Rank>1D</Rank></Shape>
        <IsStaticTensor>true</IsStaticTensor>
      </Input>
      <Input>
        <Name>more</Name>
        <Mandatory>false</Mandatory>
        <Datatype>QNN_DATATYPE_FLOAT_32</Datatype>
        <Datatype>QNN_DATATYPE_UFIXED_POINT_8</Datatype>
        <Shape><Rank>ND</Rank><Layout>NONTRIVIAL</Layout></Shape>
        <Repeated>true</Repeated>
      </Input>
      <Output>
        <Name>out</Name>
        <Mandatory>true</Mandatory>
        <Datatype>BACKEND_SPECIFIC</Datatype>
        <Shape><Rank>4D</Rank><Layout>NHWC</Layout></Shape>
      </Output>
      <Parameter>
        <Name>mode</Name>
        <Mandatory>false</Mandatory>
        <Datatype>QNN_DATATYPE_UINT_32</Datatype>
        <Shape><Rank>SCALAR</Rank></Shape>
        <Default>ADD</Default>
        <Enumeration><Enum>ADD</Enum><Enum>SCREEN</Enum></Enumeration>
      </Parameter>
      <Parameter>
        <Name>weights</Name>
        <Mandatory>false</Mandatory>
        <Datatype>QNN_DATATYPE_FLOAT_32</Datatype>
        <Shape><Rank>1D</Rank></Shape>
        <Default>[0.5, 0.5]</Default>
      </Parameter>
      <UseDefaultTranslation>false</UseDefaultTranslation>
      <SupportedBackend>CPU</SupportedBackend>
      <SupportedBackend>HTP</SupportedBackend>
    </OpDef>
  </OpDefList>
  <SupplementalOpDefList Backend="CPU">
    <SupplementalOpDef>
      <Name>Blend</Name>
      <Input><Name>in[0]</Name><Datatype>QNN_DATATYPE_FLOAT_32</Datatype></Input>
      <Output><Name>out</Name><Datatype>QNN_DATATYPE_FLOAT_32</Datatype></Output>
    </SupplementalOpDef>
  </SupplementalOpDefList>
  <SupplementalOpDefList Backend="HTP">
    <SupportedOps><OpName>Blend</OpName></SupportedOps>
    <SupplementalOpDef>
      <Name>Blend</Name>
      <Input><Name>in[0]</Name><Datatype>QNN_DATATYPE_UFIXED_POINT_8</Datatype></Input>
      <Output>
        <Name>out</Name>
        <Datatype>QNN_DATATYPE_UFIXED_POINT_8</Datatype>
        <Shape><Rank>4D</Rank><Text>as in[0]</Text></Shape>
      </Output>
    </SupplementalOpDef>
  </SupplementalOpDefList>
</OpDefCollection>
"""
WEIGHTS = """QNN_DATATYPE_{}_32</Datatype>
        <Shape><Rank>1D</Rank></Shape>
        <Default>{}</Default>"""
# What is replaced (the first time that it occurs) by what; then the line and the message.
BROKEN = [
    ("</OpDefCollection>", "", 78, "not XML: no element found"),
    ("</OpDefList>", "</OpDefLst>", 57, "not XML: mismatched tag"),
    ("<!-- a comment -->", "<!DOCTYPE a>", 2, "a document type is declared"),
    ("Blends &lt;", "Blends \udcff", 7, "not XML"),
    ('PackageName="my.Package" ', "", 3, "the attribute PackageName is missing"),
    ("my.Package", "my package", 3, "letters, digits"),
    ("my.Package", "qti.aisw", 3, "QNN's own package"),
    ("Domain=", "Domian=", 3, "it has no attribute 'Domian'.*did you mean Domain"),
    ('Version="1.0" U', 'Version="one" U', 3, "'one' is no version"),
    ('UseQHPI="true"', 'UseQHPI="maybe"', 3, "UseQHPI: 'maybe' is neither true nor false"),
    ("<OpDefList>", "<OpDefList><Foo/>", 4, "<Foo>: not known in <OpDefList>"),
    ("<OpDef>\n", "<OpDef>loose\n", 5, "loose text 'loose'"),
    ("<Name>Blend</Name>", "", 5, "<Name> is missing"),
    ("<Name>Blend</Name>", "<Name></Name>", 6, "it is empty"),
    ("<Name>Blend</Name>", "<Name>2nd</Name>", 6, "'2nd' is no name"),
    ("<Name>Blend</Name>", "<Name>Blend</Name><Name>B</Name>", 6, "given twice"),
    ("<Name>table</Name>", "<Name>in[0]</Name>", 17, r"'in\[0\]' is declared twice"),
    ("<Mandatory>true</Mandatory>", "", 9, "<Mandatory> is missing"),
    ("<Mandatory>true</Mandatory>", "<Mandatory>yes</Mandatory>", 12, "'yes' is neither true nor false"),
    (' Type="Shape"', "", 13, "the attribute Type is missing"),
    ("<Datatype>QNN_DATATYPE_FLOAT_32</Datatype>", "", 17, "'table' has no <Datatype>"),
    ("QNN_DATATYPE_FLOAT_32", "QNN_DATATYPE_FLOAT32", 20, "no data type.*did you mean QNN_DATATYPE_FLOAT_32"),
    ("<Shape><Rank>1D</Rank></Shape>", "", 17, "'table' has no <Shape>"),
    ("<Rank>1D</Rank>", "", 21, "<Rank> is missing"),
    ("<Rank>1D</Rank>", "<Rank>two</Rank>", 21, "'two' is no rank"),
    ("<Rank>4D</Rank>", "<Rank>3D</Rank>", 15, "layout NHWC has 4 axes, rank 3D does not"),
    ("<Layout>NHWC</Layout>", "<Layout>HWC</Layout>", 15, "'HWC' is no layout.*did you mean"),
    ("<IsStaticTensor>true</IsStaticTensor>", "<Repeated>true</Repeated>", 17, "only the last may be"),
    ("<IsStaticTensor>true</IsStaticTensor>", "<Enumeration/>", 22, "it does not apply to <Input>"),
    ("<Default>ADD</Default>", "<Default>SUB</Default>", 43, "'SUB' is no member"),
    ("<Default>[0.5, 0.5]</Default>", "<Default>[a, b]</Default>", 51, "are no numbers"),
    (WEIGHTS.format("FLOAT", "[0.5, 0.5]"), WEIGHTS.format("UINT", "[1, -1]"), 51, "are no numbers"),
    ("_POINT_8</D", "_POINT_8</Datatype><Datatype>QNN_DATATYPE_FLOAT_32</D", 28, "data type .* twice"),
    ("<Enum>ADD</Enum><Enum>SCREEN</Enum>", "", 44, "it has no <Enum>"),
    ("<Enum>SCREEN</Enum>", "<Enum>ADD</Enum>", 44, "member 'ADD' is declared twice"),
    ("<UseDefaultTranslation>false", "<UseDefaultTranslation>no", 53, "'no' is neither"),
    ("<SupportedBackend>CPU</", "<SupportedBackend>TPU</", 54, "is no backend"),
    ("<SupportedBackend>CPU", "<SupportedBackend>GPU", 5, "no supplement says its data types on GPU"),
    ('<SupplementalOpDefList Backend="CPU">', "<SupplementalOpDefList>", 58, "attribute Backend is missing"),
    ('Backend="HTP"', 'Backend="CPU"', 65, "supplement for 'CPU' is declared twice"),
    ("<OpName>Blend", "<OpName>Blnd", 66, "'Blnd' is no operation.*did you mean Blend"),
    ("<Input><Name>in[0]", "<Input><Name>in[1]", 61, r"'in\[1\]' is no input of 'Blend'"),
]  # fmt: skip


def _read(tmp_path: Path, text: str) -> OpPackage:
    path = tmp_path / "package.xml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return read_op_package(path)


def test_every_construct_is_read(tmp_path: Path) -> None:
    package = _read(tmp_path, XML)
    assert (package.name, package.qhpi, package.backends) == ("my.Package", True, ("CPU", "HTP"))
    op = package.ops[0]
    assert (op.description, op.code, op.reference[0]) == ("Blends <images>.", "y = a + b", "a paper")
    assert op.use_default_translation is False and op.backends == ("CPU", "HTP")
    image, table, more = op.inputs
    assert (image.rank, image.layout, image.shape) == ("4D", "NHWC", "[N, H, W, C]")
    assert image.constraints[0].text == "as large as the other"
    assert table.static and not table.mandatory and more.repeated and len(more.datatypes) == 2
    assert op.params[0].enumeration == ("ADD", "SCREEN") and op.params[1].default == "[0.5, 0.5]"
    assert package.datatypes("Blend", "in[0]", "HTP") == ("QNN_DATATYPE_UFIXED_POINT_8",)
    assert package.datatypes("Blend", "table", "HTP") == ("QNN_DATATYPE_FLOAT_32",)


def test_prints_back_equal(tmp_path: Path) -> None:
    package = _read(tmp_path, XML)
    (tmp_path / "again.xml").write_text(print_op_package(package))
    assert read_op_package(tmp_path / "again.xml") == package
    assert print_op_package(read_op_package(tmp_path / "again.xml")) == print_op_package(package)


@pytest.mark.parametrize(("old", "new", "line", "message"), BROKEN)
def test_broken_file(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in XML
    with pytest.raises(InputError) as caught:
        _read(tmp_path, XML.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'package.xml'}:{line}: ")
    caught.match(f"(?s){message}")


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"package.xml:1: <html>: the root of an op package is"):
        _read(tmp_path, "<html/>")
    with pytest.raises(InputError, match="has no <OpDef>"):
        _read(tmp_path, '<OpDefCollection PackageName="a"><OpDefList/></OpDefCollection>')
    with pytest.raises(InputError, match="<OpDefList> is missing"):
        _read(tmp_path, '<OpDefCollection PackageName="a"/>')
    with pytest.raises(InputError, match="cannot be read"):
        read_op_package(tmp_path / "none.xml")
