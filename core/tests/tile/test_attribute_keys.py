"""Numbers of attributes are shared by equal ones, and by no others, whatever became of the objects asked about before."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, VectorType, f32, i32

from tilefw.tile.attribute_keys import AttributeKeys


def test_equal_attributes_share_a_number_and_others_do_not() -> None:
    keys = AttributeKeys()
    different = [i32, f32, VectorType(i32, [4]), VectorType(i32, [8]), IntegerAttr(1, i32), FloatAttr(1.0, f32)]
    numbers = [keys.of(each) for each in different]
    assert len(set(numbers)) == len(different)
    assert [keys.of(each) for each in different] == numbers
    assert keys.of(VectorType(IntegerType(32), [4])) == numbers[2]


def test_a_number_outlives_the_object_that_it_was_given_for() -> None:
    keys = AttributeKeys()
    numbers = [keys.of(VectorType(i32, [size])) for size in range(1, 200)]  # each dropped at once, so that ids would come again
    assert len(set(numbers)) == len(numbers)
