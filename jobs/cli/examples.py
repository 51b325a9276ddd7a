"""Examples of each command, as `--help` ends with them, and short words for the list of all."""

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "init": (
        "tidemark init orders",
        "tidemark init orders --from orders.csv",
        "tidemark init orders --from s3://bucket/bronze/orders",
    ),
    "ingest": (
        "tidemark ingest orders.yaml",
        "tidemark ingest orders.yaml --json",
    ),
    "run": (
        "tidemark run orders.yaml",
        "tidemark run orders.yaml --validate --json",
        "tidemark run orders --target prod",
    ),
    "backfill": (
        "tidemark backfill orders.yaml --from 2026-03-02 --to 2026-03-03 --dry-run",
        "tidemark backfill orders.yaml --from 2026-03-02T06:00 --to 2026-03-02T09:00 --validate",
        "tidemark backfill orders.yaml --source newest",
    ),
    "validate": (
        "tidemark validate orders.yaml",
        "tidemark validate orders.yaml --failing --limit 50",
    ),
    "publish": (
        "tidemark publish orders.yaml",
        "tidemark publish orders.yaml --accept 'a storm closed the shops'",
        "tidemark publish orders.yaml --list",
        "tidemark publish orders.yaml --rollback 12 --reason 'a price list was wrong'",
    ),
    "status": (
        "tidemark status",
        "tidemark status pipelines",
        "tidemark status orders.yaml flights.yaml --json",
    ),
    "advise": (
        "tidemark advise orders.yaml",
        "tidemark advise orders.yaml --by shop --every '15 minutes' --counted 100",
    ),
    "explain": ("tidemark explain orders.yaml",),
    "show": (
        "tidemark show orders.yaml hourly --key north --from 2026-03-02",
        "tidemark show orders.yaml hourly --published --reverse --limit 5",
        "tidemark show orders.yaml hourly --as-of 7",
    ),
    "diff": (
        "tidemark diff orders.yaml",
        "tidemark diff orders.yaml --from 12 --to 18 --limit 50 --json",
    ),
    "history": (
        "tidemark history orders.yaml hourly --key north --at 2026-03-02T09:30",
        "tidemark history orders.yaml hourly --key north --at 2026-03-02T09:30 --events",
        "tidemark history orders.yaml hourly --reverse --limit 5 --json",
    ),
    "late": ("tidemark late orders.yaml --outcome quarantined --reverse",),
    "state": (
        "tidemark state orders.yaml",
        "tidemark state orders.yaml --window hourly --key north",
    ),
    "report": (
        "tidemark report orders.yaml --output report.html",
        "tidemark report orders.yaml --samples --output samples.html",
    ),
    "test": (
        "tidemark test transcripts",
        "tidemark test transcripts -k lateness",
    ),
    "close": ("tidemark close orders.yaml --until 2026-04-01 --reason 'March is invoiced'",),
    "reopen": ("tidemark reopen orders.yaml --reason 'the invoice of March is drawn up again'",),
    "restatements": (
        "tidemark restatements orders.yaml",
        "tidemark restatements orders.yaml hourly --json",
    ),
    "register": ("tidemark register orders.yaml --schema gold",),
    "maintain": ("tidemark maintain orders.yaml",),
    "doctor": ("tidemark doctor orders.yaml",),
    "recover": ("tidemark recover orders.yaml",),
    "reset": ("tidemark reset orders.yaml",),
    "erase": (
        "tidemark erase orders.yaml --key shop=north",
        "tidemark erase orders.yaml --where customer=c7",
    ),
    "setup": ("tidemark setup",),
    "engine": (
        "tidemark engine start --idle 30",
        "tidemark engine status --json",
    ),
}

SHORT: Mapping[str, str] = {
    "advise": "Propose a watermark from the history of the source.",
    "diff": "Show which rows differ between two publications.",
    "erase": "Delete one key or value from every table for good.",
    "ingest": "Take files that have landed into the source table.",
    "report": "Write a page of lateness, corrections and quality.",
    "status": "Say how pipelines stand; exit 5 for attention.",
    "test": "Play TRANSCRIPTs against their specs.",
    "validate": "Evaluate the expectations of the newest run.",
}
"""What the list of commands says where the first sentence of a command is longer than a line."""


def list_examples(command: str) -> str:
    """The end of a command's help."""
    # The character keeps click from folding the lines.
    lines = ("\b", "Examples:", *(f"  {example}" for example in EXAMPLES[command]))
    return "\n".join(lines)
