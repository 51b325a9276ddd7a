"""The shell: command line, session, run, backfill, validate, publish; every side effect starts here."""
