"""Draws the pictures of docs/windows.md and makes the tables of the pages below.

Both show what the engine wrote.

python -m docs.draw [NAME ...]      pictures, or emission, week, lateness; without a name all
"""

import argparse
import sys
import tempfile
from pathlib import Path

from docs.draw.scenes import SCENES, picture, shoot
from docs.draw.svg import svg
from docs.draw.tables import emission, lateness, spliced, week
from jobs.session import spark_session

DOCS = Path(__file__).parents[1]
PICTURES = DOCS / "windows"
TABLES = {"emission": emission, "week": week, "lateness": lateness}
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
    known = [*(s.name for s in SCENES), *TABLES]
    asked = argparse.ArgumentParser(description="pictures and tables of the documentation")
    asked.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    names = asked.parse_args().names or known
    if unknown := set(names) - set(known):
        asked.error(f"there is no {', '.join(sorted(unknown))}")
    spark = spark_session("draw", **TINY)
    with tempfile.TemporaryDirectory(prefix="draw-") as lake:
        for scene in (s for s in SCENES if s.name in names):
            (PICTURES / f"{scene.name}.svg").write_text(
                svg(picture(scene, shoot(scene, spark, Path(lake))))
            )
        made = {
            name: text
            for n in names
            if n in TABLES
            for name, text in TABLES[n](spark, Path(lake)).items()
        }
    for page in PAGES:
        (DOCS / page).write_text(spliced((DOCS / page).read_text(), made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
