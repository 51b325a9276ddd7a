"""What is asked for: pure, frozen values and their laws; YAML only in load.py."""
