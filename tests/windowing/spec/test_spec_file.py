"""YAML files: what is read as which value, and how a file that isn't a spec is refused."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windowing.errors import SpecError
from windowing.spec.load import load_pipeline
from windowing.spec.yaml.file import LIMIT, document

RIGHT = """name: p
lake: lake
source:
  table: in/t
  event_time: ts
  key: [k]
aggregates:
  n: count()
windows:
  w: {kind: tumbling, size: 1 hour}
"""


def refused(folder: Path, text: str | bytes) -> SpecError:
    path = folder / "p.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SpecError) as caught:
        load_pipeline(path)
    assert "\n" not in str(caught.value) and str(caught.value).startswith(f"{path}: ")
    return caught.value


def test_values_are_yaml_1_2(tmp_path: Path) -> None:
    path = tmp_path / "v.yaml"
    path.write_text(
        "a: yes\nb: true\nc: 0o17\nd: 2024-01-01\ne: 12:30\nf: ~\ng: 1e3\nh: null\n<<: x\ni: [1, "
        "{j: =}]\nk: !!str 5\n"
    )
    assert document(str(path)) == {
        "a": "yes",
        "b": True,
        "c": 15,
        "d": "2024-01-01",
        "e": "12:30",
        "f": None,
        "g": 1000.0,
        "h": None,
        "<<": "x",
        "i": [1, {"j": "="}],
        "k": "5",
    }


@pytest.mark.parametrize(
    ("old", "new", "field", "line"),
    [
        ("lake: lake", "lake: lake\nname: q", "name", 3),
        ("  key: [k]", "  key: [k]\n  event_time: ts", "source.event_time", 7),
        ("  n: count()", "  n: count()\n  n: sum(x)", "aggregates.n", 9),
        ("size: 1 hour}", "size: 1 hour, size: 2 hours}", "windows.w.size", 10),
        ("1 hour}", "1 hour}\n  w: {kind: session, gap: 1 hour}", "windows.w", 11),
    ],
)
def test_repeated_fields(tmp_path: Path, old: str, new: str, field: str, line: int) -> None:
    error = refused(tmp_path, RIGHT.replace(old, new))
    assert (error.field, error.message) == (
        field,
        f"is given twice, again in line {line}; keep one of them",
    )


@pytest.mark.parametrize(
    ("text", "field", "sentence"),
    [
        (
            RIGHT.replace("lake: lake", "lake: &here lake"),
            "lake",
            "anchors such as &here and aliases are not allowed",
        ),
        (RIGHT.replace("[k]", "[&k k, *k]"), "source.key[0]", "anchors such as &k"),
        (
            RIGHT.replace("lake: lake", "lake: *here"),
            "line 2",
            "is not YAML (found undefined alias 'here')",
        ),
        (
            RIGHT.replace("lake: lake", "lake: !!python/object:os.system x"),
            "lake",
            "python/object:os.system' is not allowed",
        ),
        (RIGHT.replace("lake: lake", "lake: !here x"), "lake", "the tag '!here' is not allowed"),
        (
            RIGHT.replace("lake: lake", "lake: !!set {x}"),
            "lake",
            "is not allowed; a spec is plain text",
        ),
        (RIGHT.replace("lake: lake", "lake: !!int x"), "lake", "'x' can't be read as int"),
        (RIGHT.replace("lake: lake", "lake: !!bool x"), "lake", "'x' can't be read as bool"),
        (
            RIGHT.replace("lake: lake", "lake: " + "9" * 5000),
            "lake",
            "can't be read as int; quote it",
        ),
        (
            RIGHT.replace("lake: lake", "? [a]\n: b"),
            "line 2",
            "has a list or mapping as a field's name in line 2",
        ),
        (RIGHT.replace("  key", "\tkey"), "line 6", "is not YAML ("),
        (RIGHT.replace("1 hour}", "1 hour"), "line 11", "is not YAML ("),
        (
            RIGHT.replace("lake: lake", "lake: a: b"),
            "line 2",
            "is not YAML (mapping values are not allowed here); check indentation",
        ),
        (RIGHT + "---\nname: q\n", "line 11", "is not YAML (but found another document)"),
        ("%YAML 1.1\n---\n" + RIGHT, "line 1", "'%YAML 1.1' is a directive; leave it out"),
        ("- a\n- b\n", "line 1", "['a', 'b'] is not a pipeline; write a mapping"),
        ("", "line 1", "the file is empty; write a mapping that begins with name and source"),
        ("# nothing yet\n", "line 1", "the file is empty"),
        ("just text", "line 1", "'just text' is not a pipeline"),
        ("name: p\n" * 2, "name", "is given twice"),
        ("[" * 1000, "", "nested too deeply"),
        (b"name: p\nlake: \xff\n", "line 2", "is not UTF-8 text"),
        ("name: \0\n", "", "is not YAML (unacceptable character"),
        ("x: " + "y" * LIMIT, "", "is larger than 256 KB"),
        (
            RIGHT.replace("size: 1 hour", "size: 15"),
            "windows.w.size",
            "15 is not a duration such as '15 minutes'",
        ),
        (
            RIGHT.replace("size: 1 hour", "size: 1 hour, empty: yes"),
            "windows.w.empty",
            "'yes' is not true or false",
        ),
        (
            RIGHT.replace("1 hour}", "1 hour, empty_limit: 1.0}"),
            "windows.w.empty_limit",
            "1.0 is not a whole number",
        ),
        (
            RIGHT.replace("1 hour}", "1 hour, having: 3}"),
            "windows.w.having",
            "3 is not a condition such as 'flights >= 3'",
        ),
        (
            RIGHT.replace("tumbling, size: 1 hour", "delta, attribute: x, delta: .nan"),
            "windows.w.delta",
            "nan is not a number such as 10",
        ),
        (
            RIGHT.replace("tumbling, size: 1 hour", "delta, attribute: x, delta: '1'"),
            "windows.w.delta",
            "'1' is text; write a number without",
        ),
        (
            RIGHT.replace("  event_time: ts", "  event_time: ts\n  where: true"),
            "source.where",
            "true is not an expression such as",
        ),
        (
            RIGHT.replace("  event_time: ts", "  event_time: ts\n  where: a > 1 # x\n  where: b"),
            "source.where",
            "is given twice",
        ),
        (
            RIGHT.replace("  event_time: ts", "  event_time: ts\n  where: a = 'x' and"),
            "source.where",
            "can't be read near 'and'",
        ),
        (
            RIGHT.replace("  event_time: ts", "  event_time: arrival\n  changes: feed"),
            "source.changes",
            "'feed' counts events again, which can't be done with event_time: arrival; use refuse",
        ),
        (
            RIGHT.replace("lake: lake", "lake: gs://bucket/lake"),
            "lake",
            "'gs://bucket/lake' lies in gs:, which is not supported yet",
        ),
    ],
)
def test_files_that_are_no_specs(
    tmp_path: Path, text: str | bytes, field: str, sentence: str
) -> None:
    error = refused(tmp_path, text)
    assert (error.field, sentence in str(error)) == (field, True), str(error)


def test_expressions_as_yaml_spells_them(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    folded = "  event_time: ts\n  where: >\n    a > 1\n    and b\n"
    path.write_text(
        RIGHT.replace(
            "  event_time: ts\n",
            folded + "  columns: {late: delay > 60, gate: \"coalesce(gate, 'none')\"}\n",
        )
    )
    source = load_pipeline(path).source
    assert source.where is not None and source.where.sql == "a > 1 and b"
    assert [(name, e.sql) for name, e in source.columns] == [
        ("late", "delay > 60"),
        ("gate", "coalesce(gate, 'none')"),
    ]


def test_a_comment_in_folded_text_is_text(tmp_path: Path) -> None:
    error = refused(
        tmp_path,
        RIGHT.replace("  event_time: ts\n", "  event_time: ts\n  where: >\n    a > 1  # if so\n"),
    )
    assert error.field == "source.where" and "has '#'" in error.message


def test_a_whole_file_behind_an_anchor(tmp_path: Path) -> None:
    assert refused(tmp_path, "&all {name: p}\n").field == "line 1"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (str(tmp_path / "none.yaml"), str(tmp_path), "a\0b"):
        with pytest.raises(SpecError, match="can't be read"):
            load_pipeline(path)


def test_the_largest_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(RIGHT + "#" * (LIMIT - len(RIGHT)))
    assert load_pipeline(path).name == "p"


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    cut=st.integers(0, len(RIGHT)),
    junk=st.text(max_size=12)
    | st.sampled_from(["[", "{", ": ", "- ", "&a ", "*a", "!", "\n", "'", "? "]),
)
def test_junk_in_a_file_is_a_spec_error_or_a_pipeline(tmp_path: Path, cut: int, junk: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes((RIGHT[:cut] + junk + RIGHT[cut:]).encode("utf-8", "surrogatepass"))
    try:
        assert load_pipeline(path).file == str(path)
    except SpecError as error:
        assert "\n" not in str(error)


COUNTED = "aggregates:\n  n: count()"
CUT = [
    ("{p: quantile(x, 0.95)}", "p", "quantile(x", 'p: "quantile(x, 0.95)"'),
    ("{n: count(), p: quantile(x, 0.5), m: max(x)}", "p", "quantile(x", 'p: "quantile(x, 0.5)"'),
    ("{p: quantile(x, 0.5), q: quantile(y, 0.5)}", "p", "quantile(x", 'p: "quantile(x, 0.5)"'),
    ("{a: max_by(gate, delay)}", "a", "max_by(gate", 'a: "max_by(gate, delay)"'),
    ("{a: percentile(x, 0.5, 100)}", "a", "percentile(x", 'a: "percentile(x, 0.5, 100)"'),
    ("{a: {call: top_k(g, 3), where: x}}", "a.call", "top_k(g", 'call: "top_k(g, 3)"'),
    ("{a: {call: count(), where: x in (1, 2)}}", "a.where", "x in (1", 'where: "x in (1, 2)"'),
    ("{a: {call: count(), where: (x, 2) > y}}", "a.where", "(x", 'where: "(x, 2) > y"'),
    ("{a: quantile(x,\n    0.5)}", "a", "quantile(x", 'a: "quantile(x, 0.5)"'),
]


@pytest.mark.parametrize(("aggregates", "field", "cut", "right"), CUT)
def test_a_text_that_a_comma_cut_lacks_quotes(
    tmp_path: Path, aggregates: str, field: str, cut: str, right: str
) -> None:
    error = refused(tmp_path, RIGHT.replace(COUNTED, f"aggregates: {aggregates}"))
    assert error.field == f"aggregates.{field}"
    why = "an unquoted text inside braces ends at a comma"
    assert error.message == f"'{cut}' lacks quotes: {why}; write {right}"


def test_the_corrected_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(RIGHT.replace(COUNTED, 'aggregates: {p95: "quantile(price, 0.95)"}'))
    assert [str(a) for a in load_pipeline(path).aggregates] == ["quantile(price, 0.95)"]


def test_a_comma_needs_no_quotes_outside_braces(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(RIGHT.replace("n: count()", "n: quantile(price, 0.95)"))
    assert [str(a) for a in load_pipeline(path).aggregates] == ["quantile(price, 0.95)"]


NOT_CUT = ["{a: (b, c: d)}", "{a: '(b', c}", "{a: ':(', c: 1, d}", "{a: b), c}", "{a: (b, c: }"]


@pytest.mark.parametrize("text", [*NOT_CUT, "{a: (b, 'c)'}"])
def test_only_a_text_that_was_cut_is_taken_for_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "v.yaml"
    path.write_text(text)
    assert isinstance(document(str(path)), dict)


def test_quotes_after_a_comma_in_braces_are_explained(tmp_path: Path) -> None:
    columns = "  columns: {g: coalesce(gate, 'none')}\n  key: [k]"
    message = refused(tmp_path, RIGHT.replace("  key: [k]", columns)).message
    assert "inside braces and brackets a text that holds a comma needs quotes around it" in message
