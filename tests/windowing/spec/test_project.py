"""Projects: which file is one, what it gives the specs below it, and what is wrong with it."""

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from windowing.errors import SpecError, UsageError
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline, PlacedBy
from windowing.spec.project.document import ProjectDocument, TargetDocument, model_at
from windowing.spec.project.file import find_project_file
from windowing.spec.project.load import find_project, find_project_in
from windowing.spec.project.specs import list_specs, names_of
from windowing.spec.yaml.json_schema import json_schema

SPEC = """
name: {name}
{lake}
source: {{table: "{table}", event_time: at, key: [shop]}}
aggregates: {{n: count()}}
windows: {{hourly: {{kind: tumbling, size: 1 hour}}}}
"""
TWO = """
target = "dev"
[targets.dev]
lake = "lake"
[targets.prod]
lake = "s3://shop/lake"
places = {bronze = "s3://shop/bronze/"}
master = "spark://host:7077"
engine = "off"
"""


def spec(folder: Path, name: str = "orders", lake: str = "", table: str = "lake://o") -> Path:
    """The file of a spec, in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.yaml"
    file.write_text(SPEC.format(name=name, lake=lake, table=table))
    return file


def plant(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a file or a link one of another user, as far as this process may."""
    if os.geteuid() == 0:
        os.chown(file, 12_345, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: file.lstat().st_uid + 1)


@pytest.mark.parametrize("name", ["tidemark.toml", "pyproject.toml"])
def test_a_file_that_another_user_has_put_where_everybody_may_write_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "shared" / "mine"
    below.mkdir(parents=True)
    planted = tmp_path / "shared" / name
    planted.write_text("[tool.tidemark]\n" if name == "pyproject.toml" else "")
    plant(planted, monkeypatch)
    # As in a container, whose user is not the one that files belong to.
    assert find_project_file(str(below)) == str(planted)
    planted.parent.chmod(0o1777)
    sentence = (
        f"{planted}: belongs to another user, in {planted.parent}, where everybody may write, so "
        "it is not taken; delete it, or work in a folder with a tidemark.toml of yours, or, if "
        f"the folder is yours and the file is right, `chmod o-w {planted.parent}`"
    )
    with pytest.raises(SpecError, match=re.escape(sentence)):
        find_project_file(str(below))
    (below / "tidemark.toml").write_text("")
    if os.geteuid() == 0:
        assert find_project_file(str(below)) == str(below / "tidemark.toml")


def test_a_link_that_another_user_has_put_where_everybody_may_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text("")
    planted = tmp_path / "shared" / "tidemark.toml"
    planted.parent.mkdir()
    planted.symlink_to(tmp_path / "mine.toml")
    planted.parent.chmod(0o1777)
    assert find_project_file(str(planted.parent)) == str(planted)
    plant(planted, monkeypatch)
    with pytest.raises(SpecError, match="belongs to another user"):
        find_project_file(str(planted.parent))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A project with two targets and a pipeline that has no lake of its own."""
    (tmp_path / "tidemark.toml").write_text(TWO)
    spec(tmp_path / "pipelines")
    return tmp_path


def places(pipeline: Pipeline) -> tuple[str, str]:
    return pipeline.lake.text, pipeline.source.table.text


def test_a_spec_without_a_lake_has_that_of_the_target(home: Path) -> None:
    file = home / "pipelines" / "orders.yaml"
    dev, prod = load_pipeline(file), load_pipeline(str(file), "prod")
    assert places(dev) == (f"{home}/lake", f"{home}/lake/o")
    assert places(prod) == ("s3://shop/lake", "s3://shop/lake/o")
    toml = str(home / "tidemark.toml")
    assert dev.placed_by == PlacedBy(toml, "dev")
    assert prod.placed_by == PlacedBy(toml, "prod", ("--target", "prod"))


def test_a_name_is_a_pipeline_of_the_project_above_the_current_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = home / "notes" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    found = load_pipeline("orders")
    assert found.file == os.path.join("..", "..", "pipelines", "orders.yaml")
    assert places(found) == (f"{home}/lake", f"{home}/lake/o")
    # A path stays a path, also one that begins like a name.
    assert load_pipeline("../../pipelines/orders.yaml") == found


def test_without_a_project_a_text_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec(tmp_path, lake="lake: lake").rename(tmp_path / "orders")
    assert load_pipeline("orders").file == "orders"
    with pytest.raises(UsageError, match="'flights' is no file, and a pipeline has a name only in"):
        load_pipeline("flights")


def test_a_lake_of_the_spec_counts_before_that_of_a_target(home: Path) -> None:
    file = spec(home / "pipelines", lake="lake: ../own", table="lake://o")
    found = load_pipeline(file, "prod")
    assert places(found) == (f"{home}/own", f"{home}/own/o")
    assert found.placed_by is None


def test_a_lake_of_the_spec_leaves_the_other_places_to_the_target(home: Path) -> None:
    file = spec(home / "pipelines", lake="lake: ../own", table="bronze://orders/eu")
    found = load_pipeline(file, "prod")
    assert places(found) == (f"{home}/own", "s3://shop/bronze/orders/eu")
    assert found.placed_by is not None
    file = spec(home / "pipelines", lake="lake: lake://eu", table="../o")
    assert places(load_pipeline(file, "prod")) == ("s3://shop/lake/eu", f"{home}/o")


def test_places_of_a_target_hold_files_that_land(home: Path) -> None:
    file = spec(home / "pipelines", table="lake://bronze/o")
    file.write_text(file.read_text().replace("{table", "{files: {folder: bronze://drop}, table"))
    files = load_pipeline(file, "prod").source.files
    assert files is not None
    assert files.folder.text == "s3://shop/bronze/drop"
    assert files.columns.text == f"{home}/pipelines/columns/orders.yaml"


def test_the_lake_is_a_place_without_a_project_too(tmp_path: Path) -> None:
    assert places(load_pipeline(spec(tmp_path, lake="lake: l"))) == (
        f"{tmp_path}/l",
        f"{tmp_path}/l/o",
    )
    written: dict[str, Any] = {
        "name": "orders",
        "lake": "/l",
        "source": {"table": "lake://b/o", "event_time": "at", "key": ["shop"]},
        "aggregates": {"n": "count()"},
        "windows": {"all": {"kind": "global"}},
    }
    assert places(load_pipeline(written)) == ("/l", "/l/b/o")
    outside = {**written, "source": {**written["source"], "table": "lake://../o"}}
    with pytest.raises(SpecError, match="which might lead out of the place"):
        load_pipeline(outside)
    with pytest.raises(SpecError, match=r"^lake: is missing; .+, as an absolute path$"):
        load_pipeline({name: value for name, value in written.items() if name != "lake"})


def test_a_broken_file_of_others_is_none_of_the_project(tmp_path: Path) -> None:
    broken = tmp_path / "pyproject.toml"
    broken.write_text("[project\nname = 'tidemark-shop'\n")
    assert find_project_file(str(tmp_path)) is None
    broken.write_text("[tool.tidemark\n")
    with pytest.raises(SpecError, match="is not TOML"):
        find_project_file(str(tmp_path))


def test_the_path_of_a_lake_on_hdfs_is_normalised(tmp_path: Path) -> None:
    file = spec(tmp_path, lake="lake: hdfs://Node:8020/data//lake/")
    assert load_pipeline(file).lake.text == "hdfs://node:8020/data/lake"
    file = spec(tmp_path, lake="lake: hdfs://Node:65535/lake")
    assert load_pipeline(file).lake.text == "hdfs://node:65535/lake"


def test_a_nameservice_on_hdfs_keeps_its_capital_letters(tmp_path: Path) -> None:
    file = spec(tmp_path, lake="lake: HDFS://MyCluster/data//lake/")
    assert load_pipeline(file).lake.text == "hdfs://MyCluster/data/lake"


def test_the_nearest_file_is_the_projects(tmp_path: Path) -> None:
    inner, deep = tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    assert find_project_file(str(deep)) is None
    (tmp_path / "pyproject.toml").write_text("[tool.tidemark.targets.dev]\nlake = 'l'\n")
    assert find_project_file(str(deep)) == str(tmp_path / "pyproject.toml")
    # Others have their own tables in such a file.
    (inner / "pyproject.toml").write_text("[tool.ruff]\n[project]\nname = 'tidemark-shop'\n")
    assert find_project_file(str(deep)) == str(tmp_path / "pyproject.toml")
    (tmp_path / "a" / "tidemark.toml").touch()
    assert find_project_file(str(deep)) == str(tmp_path / "a" / "tidemark.toml")
    (tmp_path / "tidemark.toml").touch()
    assert find_project_file(str(tmp_path)) == str(tmp_path / "tidemark.toml")
    assert find_project_in(str(deep)) is None


def test_a_table_of_pyproject_is_a_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.tidemark]\npipelines = 'specs'\n[tool.tidemark.targets.dev]\nlake = 'l'\n"
    )
    file = spec(tmp_path / "specs")
    assert load_pipeline(file).lake.text == f"{tmp_path}/l"
    found = find_project(str(tmp_path / "specs"))
    assert found is not None
    assert found.pipelines == f"{tmp_path}/specs"


def test_a_file_of_others_that_is_no_toml_is_theirs(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = tidemark-shop\n")
    assert find_project_file(str(tmp_path)) is None
    (tmp_path / "pyproject.toml").write_text("[tool.tidemark]\nlake = l\n")
    with pytest.raises(SpecError, match=r"pyproject.toml: is not TOML \(invalid value \(at line 2"):
        find_project_file(str(tmp_path))


def test_one_target_is_meant_where_there_is_no_other(tmp_path: Path) -> None:
    (tmp_path / "tidemark.toml").write_text("[targets.here]\nlake = 'l'\n")
    found = load_pipeline(spec(tmp_path / "pipelines"))
    assert found.placed_by == PlacedBy(str(tmp_path / "tidemark.toml"), "here")


def test_the_digest_of_a_pipeline_is_that_of_any_target(home: Path) -> None:
    from windowing.spec.fingerprint import parts

    file = home / "pipelines" / "orders.yaml"
    assert parts(load_pipeline(file)) == parts(load_pipeline(file, "prod"))


WRONG = [
    ("lake = 'l'", "lake: belongs to a target; write it under [targets.dev], or under others"),
    ("lakes = 'l'", "lakes: is not a field here (given 'l'); allowed: pipelines, target, targets"),
    ("pipeline = 'p'", "pipeline: is not a field here (given 'p'), did you mean 'pipelines'"),
    ("[tidemark]\npipelines = 'p'", "tidemark: is not a table here; in tidemark.toml pipelines, "),
    ("[tool.tidemark]\ntarget = 'd'", "tool: is not a table here; in tidemark.toml pipelines, "),
    ("pipelines = 5", "pipelines: 5 is not a path such as ../lake or /data/lake"),
    ("pipelines = '../specs'", "pipelines: '../specs' is not below the folder of this file"),
    ("pipelines = 's3://a-bucket/specs'", "is not below the folder of this file"),
    ("targets = ['dev']", "targets: ['dev'] is not a mapping; write places by the names of"),
    ("targets.dev = 'lake'", "targets.dev: 'lake' is not a mapping; write fields among lake, "),
    ("[targets.dev]\nlak = 'l'", "targets.dev.lak: is not a field here (given 'l'), did you mean "),
    ("[targets.dev]\nlake = ''", "targets.dev.lake: '' is not a path such as ../lake"),
    ("[targets.dev]\nlake = 'gs://b/l'", "targets.dev.lake: 'gs://b/l' lies in gs:, which is not"),
    ("[targets.dev]\nlake = '$HOME/l'", "targets.dev.lake: '$HOME/l' holds '$HOME', but environ"),
    ("[targets.dev]\nengine = 'on'", "targets.dev.engine: 'on' is not allowed; it is 'auto' or "),
    ("[targets.dev]\nmaster = 7077", "targets.dev.master: 7077 is not a master such as spark://"),
    ("[targets.Dev]\nlake = 'l'", "targets.Dev: 'Dev' is not the name of a target; it matches"),
    ("[targets.dev.places]\nlake = 'l'", "targets.dev.places.lake: is a field of the target its"),
    ("[targets.dev.places]\ns3 = 'l'", "targets.dev.places.s3: 's3' can't be the name of a place"),
    ("[targets.dev.places]\nBr = 'l'", "targets.dev.places.Br: 'Br' can't be the name of a place"),
    ("target = 'dev'", "target: 'dev' is not a target, there are none; name one of them, or write"),
    (
        TWO.replace('"dev"', '"prd"'),
        "target: 'prd' is not a target, targets are dev, prod, did ",
    ),
    (TWO.replace('target = "dev"', ""), "target: is missing, and there are dev, prod; write which"),
    ("lake = lake", "is not TOML (invalid value (at line 1, column 8)); texts stand in quotes"),
    ("[targets.dev]\n[targets.dev]", "is not TOML (cannot declare"),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_a_wrong_project_is_one_sentence_with_the_file(
    text: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "tidemark.toml").write_text(text)
    # A spec with a lake of its own is in the project, too.
    with pytest.raises(SpecError) as refused:
        load_pipeline(spec(tmp_path, lake="lake: l"))
    assert str(refused.value).startswith(f"{tmp_path}/tidemark.toml: ")
    assert sentence in str(refused.value)


def test_a_wrong_table_is_named_as_it_stands_in_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.tidemark.targets.dev]\nlak = 'l'\n")
    with pytest.raises(SpecError, match=r"pyproject\.toml: tool\.tidemark\.targets\.dev\.lak: is"):
        find_project(str(tmp_path))


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "tidemark.toml").write_bytes(b"\xff")
    with pytest.raises(SpecError, match=r"tidemark\.toml: is not UTF-8 text"):
        find_project(str(tmp_path))
    if os.geteuid():
        (tmp_path / "tidemark.toml").chmod(0)
        with pytest.raises(SpecError, match=r"tidemark\.toml: can't be read \(Permission denied"):
            find_project(str(tmp_path))


def test_a_target_that_is_not_there(home: Path) -> None:
    with pytest.raises(UsageError, match=r"target 'prd': .+ has dev, prod, did you mean 'prod'"):
        load_pipeline(home / "pipelines" / "orders.yaml", "prd")
    (home / "tidemark.toml").write_text("")
    with pytest.raises(UsageError, match=r"target 'dev': .+tidemark.toml has none; name another"):
        load_pipeline(home / "pipelines" / "orders.yaml", "dev")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            None,
            '; write .+ = "lake" under [targets.dev] in a file tidemark.toml here or above',
        ),
        (
            "",
            '; write .+ = "lake" under [targets.dev] in {home}/tidemark.toml, which has none',
        ),
        ("[targets.d]", "; write .+ as lake under [targets.d] in {home}/tidemark.toml, which has"),
    ],
)
def test_a_lake_that_nothing_says(text: str | None, sentence: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "tidemark.toml").write_text(text)
    with pytest.raises(SpecError) as refused:
        load_pipeline(spec(tmp_path))
    beginning, _, end = sentence.format(home=tmp_path).partition(".+")
    said = str(refused.value)
    assert said.startswith(f"{tmp_path}/orders.yaml: lake: is missing{beginning}")
    assert end in said


def test_a_place_that_is_none(home: Path) -> None:
    file = spec(home / "pipelines", table="bronzee://o")
    with pytest.raises(SpecError) as refused:
        load_pipeline(file, "prod")
    assert (
        "source.table: 'bronzee://o' begins with bronzee:, which is neither a store nor a place; "
        f"target prod of {home}/tidemark.toml has lake, bronze, did you mean 'bronze'"
    ) in str(refused.value)
    with pytest.raises(SpecError, match=r"neither a store nor a place; this spec has lake; use"):
        load_pipeline(spec(home.parent / "else", lake="lake: l", table="bronze://o"))


def test_names_that_are_none_or_two(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    folder = home / "pipelines"
    spec(folder, "trips").write_text("name: [")
    (folder / "list.yml").write_text("- a")
    (folder / ".hidden.yaml").write_text("name: hidden")
    with pytest.raises(UsageError) as refused:
        load_pipeline("order")
    assert str(refused.value) == (
        f"no pipeline is called 'order' in {folder}, there are orders, did you mean 'orders'; no "
        "name can be read in list.yml, trips.yaml; name one of them, or give the path of a spec"
    )
    # A broken spec doesn't affect the others.
    assert load_pipeline("orders").name == "orders"
    spec(folder, "again").write_text((folder / "orders.yaml").read_text())
    with pytest.raises(UsageError) as refused:
        load_pipeline("orders")
    assert str(refused.value) == (
        f"two pipelines are called 'orders', in {folder}/again.yaml and {folder}/orders.yaml; "
        "give one of them another name"
    )
    project = find_project(str(home))
    assert project is not None
    assert names_of(project) == ["orders"]
    assert list_specs(str(folder)) == [
        f"{folder}/{name}" for name in ("again.yaml", "list.yml", "orders.yaml", "trips.yaml")
    ]


def test_a_folder_of_specs_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tidemark.toml").write_text("pipelines = 'specs'")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError) as refused:
        load_pipeline("orders")
    assert str(refused.value) == (
        f"{tmp_path}/tidemark.toml: pipelines: '{tmp_path}/specs' can't be listed (No such file or "
        "directory); name the folder of the specs, or make it"
    )


def test_the_reference_names_every_field_and_its_example_is_right(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "spec.md").read_text()
    written = [f"`{name}`" for name in ProjectDocument.model_fields]
    written += [f"`targets.NAME.{name}`" for name in TargetDocument.model_fields]
    assert [name for name in written if f"| {name} |" not in page] == []
    (example,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "tidemark.toml").write_text(example)
    found = find_project(str(tmp_path))
    assert found is not None
    assert (found.names, found.target) == (("dev", "prod"), "dev")
    prod = found.targets[1]
    assert prod.places["bronze"] == "s3://shop-data/bronze"
    assert ProjectDocument.model_validate(tomllib.loads(example)).targets["prod"].engine == "off"


def test_every_field_is_described_for_editors() -> None:
    for model in (ProjectDocument, TargetDocument):
        assert [n for n, field in model.model_fields.items() if not field.description] == []
    assert model_at(("targets", "dev")) is TargetDocument
    assert model_at(("targets", "dev", "places")) is None
    assert json.dumps(json_schema("project")).count("additionalProperties") >= 2
