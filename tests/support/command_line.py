"""The command line on the pipeline of a lab, in this process."""

from click.testing import CliRunner, Result

from jobs.cli.main import main
from tests.support.pipeline_under_test import Lab


def run_command(lab: Lab, name: str, *words: str) -> Result:
    """`tidemark NAME SPEC WORDS`, where the spec is the file `lab.yaml` of the lab."""
    given = [name, str(lab.root / "lab.yaml"), *words]
    return CliRunner().invoke(main, given, prog_name="tidemark")
