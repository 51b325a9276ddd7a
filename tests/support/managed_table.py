"""A Delta table as if a catalog had made it, and managed it."""

import json
from pathlib import Path

from windowing.storage.log_lines import LOG


def become_managed(table: Path, feature: str = "catalogManaged") -> None:
    """Writes the first commit of a table anew, with the protocol of one that a catalog manages."""
    commit = table / LOG / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": [feature, "vacuumProtocolCheck"],
                "writerFeatures": [feature, "vacuumProtocolCheck", "inCommitTimestamp"],
            }
    commit.write_text("\n".join(json.dumps(line) for line in lines))
    for checksum in (table / LOG).glob("*.crc"):
        checksum.unlink()
