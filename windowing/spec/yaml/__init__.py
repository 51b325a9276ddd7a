"""The spec as a YAML file: read, checked, and described by a JSON Schema."""
