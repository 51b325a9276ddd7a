"""What is asked for: pure, frozen values and their laws; YAML only in yaml/ and load.py."""
