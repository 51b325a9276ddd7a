"""Draws the pictures of docs/windows.md and of the report, and makes the tables of the pages below.

All of them show what the engine wrote. The report is photographed in Chromium.

python -m docs.draw [NAME ...]      pictures, or emission, week, lateness, report; without one all
"""

import argparse
import sys
import tempfile
from pathlib import Path

from docs.draw.report import photograph_report
from docs.draw.scenes import SCENES, make_picture, shoot_scene
from docs.draw.svg import draw_picture
from docs.draw.tables import (
    make_emission_tables,
    make_lateness_tables,
    make_week_table,
    splice_tables,
)
from jobs.session import spark_session

DOCS = Path(__file__).parents[1]
PICTURES = DOCS / "windows"
TABLES = {
    "emission": make_emission_tables,
    "week": make_week_table,
    "lateness": make_lateness_tables,
}
REPORT = "report"
PAGES = ("windows.md", "lateness.md", "adr/0009-emission-at-the-end-of-a-run.md")
TINY = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For tables of a few rows: compiling and planning again costs more than running."""


def main() -> int:
    """Writes every picture and table that was asked for."""
    names = _parse_names()
    spark = spark_session("draw", **TINY)
    made: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="draw-") as directory:
        lake = Path(directory)
        for scene in SCENES:
            if scene.name in names:
                picture = make_picture(scene, shoot_scene(scene, spark, lake))
                (PICTURES / f"{scene.name}.svg").write_text(draw_picture(picture))
        for name in names:
            if name in TABLES:
                made |= TABLES[name](spark, lake)
        if REPORT in names:
            photograph_report(spark, lake)
    for page in PAGES:
        path = DOCS / page
        path.write_text(splice_tables(path.read_text(), made))
    return 0


def _parse_names() -> list[str]:
    """The names of the command line; all if there are none."""
    known = [scene.name for scene in SCENES]
    known += [*TABLES, REPORT]
    parser = argparse.ArgumentParser(description="pictures and tables of the documentation")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    names = parser.parse_args().names or known
    unknown = set(names) - set(known)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    return names


if __name__ == "__main__":
    sys.exit(main())
