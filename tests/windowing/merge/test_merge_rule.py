"""Which columns distinguish and describe rows of outputs. No Spark."""

from tests.windowing.spec.specs import changed
from windowing.merge.rule import Together, output_table
from windowing.spec.load import load_pipeline


def test_rows_of_several_outputs_are_told_apart_by_one_more_column() -> None:
    pipeline = load_pipeline(changed())
    target = output_table(pipeline, pipeline.window("hourly"))
    both = Together(target)
    assert both.identity == (*target.identity, "__window")
    assert both.shown == (*target.shown, "__window")
