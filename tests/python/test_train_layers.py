"""Products, layers and losses, forward and backward, against torch over drawn shapes and options: within 4 ulp."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from train_layer_table import ROWS
from train_ulp import check

FLOATS = ["float64", "float32", "float16", "bfloat16"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROWS)
@settings(max_examples=25)
@given(data=st.data(), dtype=st.sampled_from(FLOATS))
def test_a_layer(name, data, dtype):
    function, arrays, places, sums = ROWS[name](data.draw)
    check(function, arrays, places, dtype, sums, name)
