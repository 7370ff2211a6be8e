"""XML that other readers accept, and limits on its size."""

import subprocess
import sys
import time

import pytest

import sarrus
from sarrus.io import document

URDF = '<robot name="r"><link name="a"/>{}</robot>'
DASHES = ("<!-- ---- -->", "<!-- a -- b -->", "<!--- a --->", "<!----->", "<!-- é -- ü -->", "<!--\n--\n-->")


@pytest.mark.parametrize("comment", DASHES)
@pytest.mark.parametrize(
    "encode", [str, str.encode, lambda text: b"\xef\xbb\xbf" + text.encode()], ids=["str", "bytes", "with a mark"]
)
def test_comments_with_dashes(comment, encode):
    """XML forbids "--" in a comment. Files that TinyXML accepts are read here too, before and in the root element, with correct lines."""
    text = comment + URDF.format(f"{comment}\n{comment}<odd/>")
    (warning,) = sarrus.loads(encode(text)).warnings
    assert warning == f"<string>:{2 + 3 * comment.count(chr(10))}: <odd> in <robot> is not read"


@pytest.mark.parametrize(
    "text",
    [
        "<![CDATA[<!-- -- -->]]>",
        "<?x <!-- -- ?>",
        "<!-- fine -->",
        "<!---->",
        "<![CDATA[<!--]]><!-- a --><![CDATA[-- -->]]>",
    ],
)
def test_what_is_no_comment_stays(text):
    assert document._readable(text, "") == text
    assert document._readable(text.encode(), "") == text.encode()


@pytest.mark.parametrize("piece", ["<!-- -- ", "<!-- -- -->", "<![CDATA[", "<?x", "<", "<!--"])
def test_comments_take_time_by_their_length(piece):
    """Linear in the length of comments, terminated or not, measured by the process time."""

    def seconds(n):
        start = time.process_time()
        document._readable(piece * n, "")
        return time.process_time() - start

    assert min(seconds(80000) for _ in range(3)) < 40 * min(seconds(10000) for _ in range(3)) + 0.05


@pytest.mark.parametrize("encode", [str, str.encode], ids=["str", "bytes"])
def test_blank_lines_before_a_declaration(encode):
    """libsdformat accepts such files; line numbers are unchanged."""
    text = '\n \n<?xml version="1.0"?>\n' + URDF.format("\n<odd/>")
    assert sarrus.loads(encode(text)).warnings == ("<string>:5: <odd> in <robot> is not read",)
    assert sarrus.loads(encode(f"\n{model('<b/>')}")).warnings  # without one too


def model(inside):
    return f'<sdf version="1.9"><model name="m"><link name="a"><inertial/></link>{inside}</model></sdf>'


@pytest.mark.parametrize("encode", [str, str.encode], ids=["str", "bytes"])
def test_attributes_without_a_space_between(encode):
    """TinyXML accepts such files; values, texts and positions of errors are unchanged."""
    text = URDF.format(
        '\n<link name=\'b"c="x\'/><joint name="j"type=\'fixed\'><parent link="a"/><child\nlink=\'b"c="x\'/></joint><odd/>'
    )
    robot = sarrus.loads(encode(text))
    assert robot.bodies == ("a", 'b"c="x') and robot.warnings == ("<string>:3: <odd> in <robot> is not read",)
    with pytest.raises(sarrus.ModelError, match=":2: not well-formed XML"):
        sarrus.loads(encode(URDF.format('\n<link name="b"odd/>')))


@pytest.mark.parametrize("piece", ['<a x="', "<a x='y'z", '<a x="y"', "<a ", '"'])
def test_spaces_take_time_by_the_length(piece):
    def seconds(n):
        start = time.process_time()
        document._with_spaces(piece * n)
        return time.process_time() - start

    assert min(seconds(80000) for _ in range(3)) < 40 * min(seconds(10000) for _ in range(3)) + 0.05


LONG = "x" * 10**6


@pytest.mark.parametrize(
    "text",
    [
        f'<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="fixed"><parent link="a"/><child link="{LONG}"/></joint></robot>',
        f'<robot name="{LONG}"><link name="a"/></robot>',
        f'<robot name="r"><link name="{LONG}"/></robot>',
        f'<robot name="r"><{LONG}/></robot>',
        f'<robot name="r" {LONG}="1"/>',
        f'<robot name="r"><link name="a"><inertial><mass value="{LONG}"/></inertial></link></robot>',
        f'<mujoco model="{LONG}"/>',
        f'<mujoco><worldbody><body name="a"/></worldbody><equality><weld body1="a" body2="{LONG}"/></equality></mujoco>',
        f'<mujoco><worldbody><body name="a" childclass="{LONG}"><geom size="1"/></body></worldbody></mujoco>',
        f'<mujoco><worldbody><body name="a"><joint type="{LONG}"/></body></worldbody></mujoco>',
        f'<sdf version="1.9"><model name="m"><link name="{LONG}"/></model></sdf>',
        f'<sdf version="1.9"><model name="m"><link name="a"/><joint name="j" type="fixed"><parent>{LONG}</parent><child>a</child></joint></model></sdf>',
        f'<sdf version="1.9"><model name="m"><include><uri>{LONG}</uri></include></model></sdf>',
    ],
)  # fmt: skip
def test_errors_are_short_whatever_a_name_is(text):
    with pytest.raises(sarrus.ModelError) as error:
        sarrus.loads(text)
    assert len(str(error.value)) < 25000


@pytest.mark.parametrize("n", [10**7, 10**8])
def test_what_is_too_long_is_refused_at_once(n, tmp_path):
    """An attribute of 100 MB, in a file or not; expat alone would take ten seconds."""
    text = URDF.format(f'<link name="b" odd="{"x" * n}"/>')
    (tmp_path / "r.urdf").write_text(text)
    start = time.process_time()
    for read, what in ((sarrus.loads, text), (sarrus.load, tmp_path / "r.urdf")):
        with pytest.raises(sarrus.ModelError, match=r"a tag, a text or a comment of more than|bytes; expected at most"):
            read(what)
    assert time.process_time() - start < 1.5


def test_a_long_chain():
    """12,500 links with all elements of a link; the tree is built in linear time."""
    inertial = '<inertial><origin xyz="0 0 1"/><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    inside = '<origin xyz="0 0 1"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/>'
    joint = '<joint name="j{}" type="revolute"><parent link="l{}"/><child link="l{}"/>{}</joint>'
    n = 12500
    links = "".join(f'<link name="l{k}">{inertial}</link>' for k in range(1, n + 1))
    joints = "".join(joint.format(k, k - 1, k, inside) for k in range(1, n + 1))
    root = document.parse(f'<robot name="chain"><link name="l0"/>{links}{joints}</robot>', "chain.urdf", {})
    assert len(root.children) == 2 * n + 1


@pytest.mark.parametrize(("piece", "most"), [("<link/>", "500 bodies, joints"), ("<visual/>", "3000 elements")])
def test_more_elements_than_are_read(piece, most, monkeypatch):
    assert (document.MOST, document.MOST_PARTS) == (300000, 50000)
    monkeypatch.setattr(document, "MOST", 3000)
    monkeypatch.setattr(document, "MOST_PARTS", 500)
    n = int(most.partition(" ")[0]) + 1
    with pytest.raises(sarrus.ModelError, match=most):
        document.parse(f"<robot>{piece * n}</robot>", "r.urdf", {})


def test_bytes_and_text_are_never_compared(tmp_path):
    """As ``python -bb`` would report, for all formats."""
    program = """
import os, sys, warnings
import sarrus
robot = sarrus.mechanisms.double_pendulum()
for suffix in (".urdf", ".xml", ".sdf", ".json"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sarrus.ModelWarning)
        robot.save("r" + suffix, lossy=True)
    sarrus.load("r" + suffix)
    text = open("r" + suffix, "rb").read()
    sarrus.loads(text), sarrus.loads(text.decode())
"""
    subprocess.run([sys.executable, "-bb", "-c", program], cwd=tmp_path, check=True)
