"""Every operator, forward and backward, against torch, over drawn shapes, dtypes and layouts: within 4 ulp."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from train_operator_table import BINARY, INTEGER_BINARY, SINGLE
from train_ulp import LAYOUTS, check, draw, np, same_result

FLOATS = ["float64", "float32", "float16", "bfloat16"]
INTEGER_ROWS = "add sub mul div floor_divide remainder fmod maximum minimum eq lt ge logical_and where".split()
INTEGERS = ["int64", "int32", "int16", "int8", "uint8", "bool"]

layouts = st.sampled_from(LAYOUTS)
seeds = st.integers(0, 99)


def shapes(least=0, smallest=1):
    return st.lists(st.integers(smallest, 6), min_size=least, max_size=4)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", SINGLE)
@settings(max_examples=20)
@given(data=st.data(), layout=layouts, dtype=st.sampled_from(FLOATS), seed=seeds)
def test_an_operator_of_one_tensor(name, data, layout, dtype, seed):
    row = SINGLE[name]
    shape = data.draw(shapes(row.least))
    check(row.function, [draw(shape, layout, seed, row.domain)], [(shape, layout)], dtype, row.sums, name)


def broadcast(shape, ones, cut):
    """A shape that broadcasts with `shape`: some sizes 1, the first ones left out."""
    return [1 if one else size for size, one in zip(shape, ones)][min(cut, len(shape)) :]


others = st.tuples(st.lists(st.booleans(), min_size=4, max_size=4), st.integers(0, 4), layouts)


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=20)
@given(shape=shapes(), other=others, layout=layouts, swapped=st.booleans(), dtype=st.sampled_from(FLOATS))
def test_an_operator_of_two_tensors_broadcasts(name, shape, other, layout, swapped, dtype):
    row, ones, cut, second = BINARY[name], *other
    places = [(shape, layout), (broadcast(shape, ones, cut), second)]
    places = places[:: -1 if swapped else 1]
    arrays = [draw(*place, seed, row.domain) for seed, place in enumerate(places)]
    check(row.function, arrays, places, dtype, row.sums, name, broadcasts=True)


@pytest.mark.parametrize("name", INTEGER_BINARY | {name: BINARY[name] for name in INTEGER_ROWS})
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_two_tensors(name, dtype):
    function = (INTEGER_BINARY | BINARY)[name].function
    values = np.array([[5, 3, 7, 1], [2, 6, 4, 3]]), np.array([3, 2, 5, 4])
    same_result(lambda lib: function(lib, *(lib.from_numpy(v).to(getattr(lib, dtype)) for v in values)), name)


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_one_tensor(name, dtype):
    values = np.array([[3, 1, 2], [7, 5, 4]])
    same_result(lambda lib: SINGLE[name].function(lib, lib.from_numpy(values).to(getattr(lib, dtype))), name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_tensors_without_elements(name, shape):
    same_result(lambda lib: SINGLE[name].function(lib, lib.zeros(shape)), name)
