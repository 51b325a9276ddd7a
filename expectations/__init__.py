"""What must hold of outputs: Great Expectations suites, their evaluation and the quality table."""
