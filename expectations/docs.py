"""Data Docs of one validation: a site in a directory of its own, of which the newest 30 are kept.

Great Expectations renders one page per output. Its scripts, icons and styles lie on other servers,
so they are taken out. An index, a style and a policy are added, by which a browser loads nothing.
"""

import re
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from windowing.location import Location
from windowing.storage.store import store_of

KEPT = 30
_SITE = "tidemark"
_INDEX_PAGE = "index.html"
_STYLE = Path(__file__).with_name("offline.css")
_INDEX = Path(__file__).with_name("docs_index.html.j2")
_DEAD = re.compile(r"""<script\b.*?</script>|<(?:link|img)\b[^>]*>|\sonclick="[^"]*\"""", re.DOTALL)
"""What a page would load from elsewhere, and scripts that need what it would have loaded."""
_POLICY = """<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; style-src 'unsafe-inline'">"""


def write_site(context: Any, results: Mapping[str, Any], site: Location) -> Location:
    """Suite name -> validation result, as one site in `site`, which it replaces; its index page.

    A result tells its name in `meta["batch_spec"]["data_asset_name"]`.
    """
    store = store_of(site)
    store.delete(site)
    # Great Expectations builds a site on a local disk alone.
    with tempfile.TemporaryDirectory() as made:
        home = Path(made) / site.name
        _make_site(context, results, home)
        names = {file.relative_to(home).as_posix() for file in home.rglob("*") if file.is_file()}
        # What links to the others comes last.
        for name in [*sorted(names - {_INDEX_PAGE}), _INDEX_PAGE]:
            store.write(site / name, (home / name).read_bytes())
    return site / _INDEX_PAGE


def _make_site(context: Any, results: Mapping[str, Any], site: Path) -> None:
    run = RunIdentifier(site.name, datetime.now(UTC))
    for name, result in results.items():
        _store_result(context, run, name, result)
    _build_pages(context, site)
    # The style that _make_offline adds replaces the static files of Great Expectations.
    shutil.rmtree(site / "static", ignore_errors=True)
    for page in site.rglob("*.html"):
        page.write_text(_make_offline(page.read_text("utf-8")), "utf-8")
    _write_index(results, site, run.run_time)


def list_sites(docs: Location) -> list[Location]:
    """The sites in `docs`, the newest first."""
    found = store_of(docs).list_files(docs)
    validated = {path.split("/")[0] for path in found if path.split("/")[1:2] == ["validations"]}
    pages = {site: found.get(f"{site}/{_INDEX_PAGE}") for site in validated}
    ages = {site: page.written_s for site, page in pages.items() if page is not None}
    return [docs / site for site in sorted(ages, key=lambda site: ages[site], reverse=True)]


def prune_docs(docs: Location) -> None:
    """Removes all but the newest `KEPT` sites in `docs`; anything there that isn't a site stays."""
    for site in list_sites(docs)[KEPT:]:
        store_of(docs).delete(site)


def _store_result(context: Any, run: RunIdentifier, name: str, result: Any) -> None:
    """Stores one result under `run`, so that the site has a page for it."""
    result.meta["run_id"] = run
    result.meta["validation_time"] = run.run_time
    suite = ExpectationSuiteIdentifier(name)
    key = ValidationResultIdentifier(suite, run, result.batch_id)
    context.validation_results_store.store_validation_results(result, key, suite)


def _build_pages(context: Any, site: Path) -> None:
    """Renders every stored result as a page below `site`."""
    backend = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(site.absolute())}
    builder = {"class_name": "SiteBuilder", "show_how_to_buttons": False, "store_backend": backend}
    context.add_data_docs_site(_SITE, builder)
    context.build_data_docs(site_names=[_SITE], build_index=False)


def _make_offline(page: str) -> str:
    style = f"{_POLICY}<style>\n{_STYLE.read_text('utf-8')}</style>"
    return _DEAD.sub("", page).replace("</head>", f"{style}</head>", 1)


def _write_index(results: Mapping[str, Any], site: Path, at: datetime) -> None:
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    index = environment.from_string(_INDEX.read_text("utf-8")).render(
        title=f"Validation of {site.name}",
        when=f"{at:%Y-%m-%d %H:%M:%S} UTC",
        pages=[_describe_page(site, name, result) for name, result in results.items()],
        policy=Markup(_POLICY),
        style=Markup(_STYLE.read_text("utf-8")),
    )
    (site / _INDEX_PAGE).write_text(index, "utf-8")


def _describe_page(site: Path, name: str, result: Any) -> Mapping[str, object]:
    """What the index says of one output; `href` is empty if it got no page."""
    pages = (site / "validations" / name).rglob("*.html")
    met = sum(bool(one.success) for one in result.results)
    return {
        "success": result.success,
        "href": next((page.relative_to(site).as_posix() for page in pages), ""),
        "name": result.meta["batch_spec"]["data_asset_name"],
        "met": met,
        "unmet": len(result.results) - met,
    }
