"""Products, layers and losses, forward and backward, against torch over drawn shapes and options: within 4 ulp."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from infeed import train
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


def test_addmm_of_halves_rounds_once():
    a = train.tensor([[1 + 2**-10]], dtype=train.float16)
    x = train.tensor([[-(1 + 2**-9)]], dtype=train.float16)
    assert train.addmm(x, a, a).item() == 2**-20
    assert train.baddbmm(x[None], a[None], a[None]).item() == 2**-20


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_the_gradient_of_a_matrix_for_many_batches_rounds_once(shape):
    a = train.ones(shape, dtype=train.float16, requires_grad=True)
    b = train.tensor([1 + 2**-10, -(1 + 2**-9)], dtype=train.float16).view(2, 1, 1)
    y = train.matmul(a, b)
    y.backward(train.tensor([1 + 2**-10, 1.0], dtype=train.float16).view(y.shape))
    assert a.grad.item() == 2**-20
