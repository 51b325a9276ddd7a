"""`python -m jobs` is `tidemark`."""

from jobs.cli.main import main

if __name__ == "__main__":
    main(prog_name="tidemark")
