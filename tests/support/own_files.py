"""Files as a newcomer has them, made from a seed: by Python alone, the same each time.

Each function writes files into a directory, and returns them in the order in which they land.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

SPRING_GAP = datetime(2025, 3, 30, 2)  # noqa: DTZ001
"""In Europe/Berlin the clocks go from here to three o'clock."""
AUTUMN_FOLD = datetime(2025, 10, 26, 2)  # noqa: DTZ001
"""There the hour from here happens twice."""
SHOPS = ("hafen", "markt", "nord", "west")
MAY = datetime(2025, 5, 1, tzinfo=UTC)


def write_local_sales(directory: Path, rows: int, *, with_offset: bool) -> list[Path]:
    """Sales of both nights on which the clocks of Berlin are changed, as CSV.

    Times are those of the wall clock. With an offset, each is one instant and none is impossible.
    """
    draw = Random(f"sales {rows}")
    lines = ["sale_id,shop,sold_at,items\n"]
    for n in range(rows):
        middle = SPRING_GAP if n < rows // 2 else AUTUMN_FOLD
        at = middle + timedelta(seconds=draw.randrange(-30 * 3600, 30 * 3600))
        if n % 5 == 0:
            # Many are in the hour that is missing or doubled.
            at = middle + timedelta(seconds=draw.randrange(-600, 4200))
        text = f"{at:%Y-%m-%d %H:%M:%S}"
        if with_offset:
            text = f"{at:%Y-%m-%dT%H:%M:%S}{_offset_of(at, draw)}"
        lines.append(f"S{n},{draw.choice(SHOPS)},{text},{draw.randint(1, 9)}\n")
    return [_write(directory / "sales.csv", lines)]


def _offset_of(at: datetime, draw: Random) -> str:
    """The offset that a clock of Berlin shows; either of two in the doubled hour."""
    if AUTUMN_FOLD <= at < AUTUMN_FOLD + timedelta(hours=1):
        return draw.choice(("+01:00", "+02:00"))
    return "+02:00" if SPRING_GAP <= at < AUTUMN_FOLD else "+01:00"


def write_nested_readings(directory: Path, rows: int, files: int) -> list[Path]:
    """Readings of devices during three days, as JSON lines; the last file has late ones only."""
    draw = Random(f"readings {rows}")
    late = rows // 50
    share = -(-(rows - late) // (files - 1))
    texts = [_reading(n, n / (rows - late), draw) for n in range(rows - late)]
    written = [
        _write(directory / f"readings-{k}.jsonl", texts[k * share : (k + 1) * share])
        for k in range(files - 1)
    ]
    # They are spread over the last day, so some windows still take them.
    behind = (_reading(rows - late + n, 0.67 + 0.33 * draw.random(), draw) for n in range(late))
    return [*written, _write(directory / f"readings-{files - 1}.jsonl", behind)]


def _reading(number: int, share: float, draw: Random) -> str:
    """A reading at a share of three days; numbers are eighths, whose sums are exact."""
    at = MAY + timedelta(seconds=3 * 86_400 * share + draw.randrange(60))
    sensors = [
        {"kind": kind, "value": draw.randrange(-400, 400) / 8} for kind in ("inside", "outside")
    ]
    reading = {
        "reading_id": f"r{number}",
        "sent_at": at.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z",
        "device": {"site": f"site {draw.randrange(5)}", "battery": draw.randrange(101)},
        "sensors": sensors[: draw.randrange(3)],
        "tags": [f"t{draw.randrange(3)}"],
    }
    return json.dumps(reading) + "\n"


def write_broken_orders(directory: Path, rows: int) -> list[Path]:
    """Orders as CSV of a German spreadsheet: some twice, some lines broken, in two files."""
    draw = Random(f"orders {rows}")
    lines = [_order(n, draw) for n in range(rows)]
    halves = lines[: rows // 2], lines[rows // 2 :]
    written = []
    for k, half in enumerate(halves):
        # The second file repeats orders of the first one, too.
        twice = draw.sample(lines[: rows // 2], rows // 20) if k else draw.sample(half, rows // 40)
        broken = list(_broken(rows // 100, draw, k))
        mixed = [*half[1000:], *twice, *broken]
        draw.shuffle(mixed)
        text = ["Bestellung;Filiale;Zeit;Betrag €\n", *half[:1000], *mixed]
        written.append(_write(directory / f"bestellungen-{k}.csv", text))
    return written


def _order(number: int, draw: Random) -> str:
    at = MAY + timedelta(seconds=draw.randrange(5 * 86_400))
    cents = draw.randrange(100, 100_000)
    shop = draw.choice(SHOPS)
    return f"B{number:07};{shop};{at:%d.%m.%Y %H:%M:%S};{cents // 100},{cents % 100:02}\n"


def _broken(number: int, draw: Random, part: int) -> Iterator[str]:
    """Lines that are no orders, each for another reason."""
    for n in range(number):
        name = f"X{part}-{n}"
        yield draw.choice(
            (
                f"{name};nord;03.05.2025 10:00:00\n",
                f"{name};nord;03.05.2025 10:00:00;1,00;mehr\n",
                f"{name};nord;03.05.2025 10:00:00;umsonst\n",
                f"{name};nord;03.05.2025 10:00:00;1.50\n",
                f"{name};nord;gestern;1,00\n",
                f"{name};nord;31.02.2025 10:00:00;1,00\n",
            )
        )


def _write(file: Path, lines: "list[str] | Iterator[str]") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as opened:
        opened.writelines(lines)
    return file
