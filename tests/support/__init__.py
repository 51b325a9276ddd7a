"""What tests of whole pipelines are made with."""
