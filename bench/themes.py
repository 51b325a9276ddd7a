"""What every theme has in common: its options, a directory that is deleted, its result."""

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.figures import RESULTS


def make_parser(theme: str, description: str) -> argparse.ArgumentParser:
    """The options of a theme that all themes have."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{theme}", description=description)
    parser.add_argument(
        "--to",
        type=Path,
        default=RESULTS / f"{theme}.json",
        metavar="FILE",
        help="where the figures are stored as JSON",
    )
    return parser


def add_rounds(parser: argparse.ArgumentParser) -> None:
    """The option for how often everything is measured."""
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often everything is measured (default: 3)"
    )


def add_size(parser: argparse.ArgumentParser, name: str, default: int, help_: str) -> None:
    """An option for one size of what is measured."""
    parser.add_argument(name, type=int, default=default, help=f"{help_} (default: {default:,})")


def describe_command(theme: str, options: argparse.Namespace) -> str:
    """The command that measures the same again, sizes spelt out."""
    words: list[str] = []
    for name, value in vars(options).items():
        if name in ("to", "before"):
            continue
        many = isinstance(value, Sequence) and not isinstance(value, str)
        values = " ".join(str(each) for each in value) if many else str(value)
        words.append(f"--{name.replace('_', '-')} {values}")
    return " ".join([f"python -m bench.{theme}", *words])


def describe_count(count: int) -> str:
    """A number of rows in few letters.

    >>> describe_count(5_000_000), describe_count(50_000), describe_count(1_234)
    ('5 M', '50 k', '1,234')
    """
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= size and count % (size // 10) == 0:
            return f"{count / size:g} {letter}"
    return f"{count:,}"


@contextmanager
def temporary_directory(theme: str) -> Iterator[Path]:
    """A directory that is deleted afterwards, whatever happened."""
    root = Path(tempfile.mkdtemp(prefix=f"{theme}-"))
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)
