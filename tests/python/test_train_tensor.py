"""Tensor: creation, views, indexing, conversions, dtypes, texts of errors: as PyTorch's."""

import copy
import gc
import pickle
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from infeed import train
from train_twins import both, name, np, same, same_error, torch

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
NUMBERS = [True, 2, 2.5, -3]


# ---- Creation ----

DATA = [3, 2.5, True, [1, 2], [1, 2.0], [True, 1], [[1.0], [2.0]], [], [[], []], (1, (2)), [1, True, 2.5]]


@pytest.mark.parametrize("data", DATA, ids=repr)
def test_data_becomes_what_pytorch_makes_of_it(data):
    same(train.tensor(data), torch.tensor(data))


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "f2", "f4", "f8"])
def test_arrays_and_their_scalars_keep_their_dtype(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    same(train.tensor(array), torch.tensor(array))
    same(train.tensor(array[1, 2]), torch.tensor(array[1, 2]))
    same(train.tensor([array[0, 1], array[0, 2]]), torch.tensor([array[0, 1], array[0, 2]]))


@pytest.mark.parametrize("data", [[[1], [1, 2]], "text", [None], {}, [["a"]]], ids=repr)
def test_other_data_is_refused(data):
    same_error(lambda lib: lib.tensor(data))


FACTORIES = {
    "zeros": lambda lib: lib.zeros(2, 3),
    "ones": lambda lib: lib.ones((2,), dtype=lib.int16),
    "full": lambda lib: lib.full((2, 2), 7),
    "full of floats": lambda lib: lib.full((2, 2), 7.5),
    "arange": lambda lib: lib.arange(5),
    "arange of floats": lambda lib: lib.arange(1, 2, 0.25),
    "arange down": lambda lib: lib.arange(5, 0, -2),
    "linspace": lambda lib: lib.linspace(0, 1, 5),
    "eye": lambda lib: lib.eye(3, 2),
    "zeros_like": lambda lib: lib.zeros_like(lib.ones(2, 2, dtype=lib.int32)),
    "full_like": lambda lib: lib.full_like(lib.ones(2), 3),
    "new_full": lambda lib: lib.ones(1, dtype=lib.float64).new_full((2,), 3),
    "new_tensor": lambda lib: lib.ones(1, dtype=lib.float64).new_tensor([1, 2]),
    "Tensor": lambda lib: lib.Tensor([1, 2]),
    "one_hot": lambda lib: lib.nn.functional.one_hot(lib.tensor([0, 2, 1])),
}


@pytest.mark.parametrize("factory", FACTORIES)
def test_factories_make_the_same(factory):
    same(FACTORIES[factory](train), FACTORIES[factory](torch))


DRAWS = {
    "rand": lambda lib: lib.rand(40),
    "rand double": lambda lib: lib.rand(40, dtype=lib.float64),
    "randn": lambda lib: lib.randn(7),
    "randn of many": lambda lib: lib.randn(5, 7),
    "randint": lambda lib: lib.randint(3, 90, (11,)),
    "randperm": lambda lib: lib.randperm(17),
    "uniform_": lambda lib: lib.empty(20).uniform_(-2, 3),
    "normal_": lambda lib: lib.empty(20).normal_(1, 2),
    "bernoulli": lambda lib: lib.bernoulli(lib.full((30,), 0.3)),
    "of a generator": lambda lib: lib.rand(5, generator=lib.Generator().manual_seed(9)),
}


@pytest.mark.parametrize("draw", DRAWS)
def test_random_numbers_are_pytorchs(draw):
    for lib in (train, torch):
        lib.manual_seed(123)
    for _ in range(2):
        same(DRAWS[draw](train), DRAWS[draw](torch))


def test_the_random_state_can_be_set_back():
    state = train.get_rng_state()
    first = train.randn(3)
    train.set_rng_state(state)
    assert train.equal(first, train.randn(3))


# ---- Views and indices ----

VIEWS = {
    "view": lambda x: x.view(4, -1),
    "reshape": lambda x: x.transpose(0, 2).reshape(-1),
    "permute": lambda x: x.permute(2, 0, 1),
    "T": lambda x: x[0].T,
    "expand": lambda x: x[:, :1].expand(-1, 5, -1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "select": lambda x: x.select(2, -1),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "flatten": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "diagonal": lambda x: x[0].diagonal(1),
    "as_strided": lambda x: x.as_strided((3, 2), (2, 5), 1),
    "split": lambda x: x.split(2, 1)[1],
    "split by sizes": lambda x: x.split([1, 2], 1)[1],
    "chunk": lambda x: x.chunk(3, 2)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "number": lambda x: x[1],
    "numbers": lambda x: x[1, -1, 2],
    "slice": lambda x: x[:, 1:, ::2],
    "slice from the end": lambda x: x[..., -3:-1],
    "None": lambda x: x[:, None, 0],
    "ellipsis": lambda x: x[..., 1],
    "list": lambda x: x[[1, 0, 1]],
    "lists": lambda x: x[[0, 1], [2, 0]],
    "lists around a slice": lambda x: x[[0, 1], :, [2, 0]],
    "mask": lambda x: x[x > 5],
    "mask of rows": lambda x: x[(x[:, :, 0] > 4)],
    "bool": lambda x: x[True],
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_and_indices_pick_the_same(view):
    x, y = both(np.arange(24.0).reshape(2, 3, 4), requires_grad=True)
    ours, theirs = VIEWS[view](x), VIEWS[view](y)
    same(ours, theirs)
    if theirs._is_view():
        assert ours.stride() == theirs.stride() and ours.storage_offset() == theirs.storage_offset()
    (ours * ours).sum().backward()
    (theirs * theirs).sum().backward()
    same(x.grad, y.grad)


def test_indices_of_tensors_and_arrays_pick_the_same():
    x, y = both(np.arange(12.0).reshape(3, 4))
    i, j = both(np.array([[0, 2], [1, 1]]))
    same(x[i], y[j])
    same(x[:, np.array([1, 3])], y[:, np.array([1, 3])])
    same(x[i, i], y[j, j])


ASSIGNMENTS = {
    "number": lambda x, lib: x.__setitem__(0, 5),
    "row": lambda x, lib: x.__setitem__(1, lib.arange(4.0)),
    "column": lambda x, lib: x.__setitem__((slice(None), 1), -1.0),
    "step": lambda x, lib: x.__setitem__((slice(0, 3, 2), slice(1, None)), lib.ones(3)),
    "mask": lambda x, lib: x.__setitem__(x > 6, 0),
    "list": lambda x, lib: x.__setitem__([0, 2], lib.ones(2, 4)),
    "all": lambda x, lib: x.__setitem__(..., 3),
    "mask by place": lambda x, lib: x.__setitem__(x < 2, lib.tensor([7.0, 8.0])),
}


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_assignments_write_the_same(assignment):
    x, y = both(np.arange(12.0, dtype=np.float32).reshape(3, 4))
    ASSIGNMENTS[assignment](x, train)
    ASSIGNMENTS[assignment](y, torch)
    same(x, y)


BAD_INDICES = {
    "too far": lambda x: x[3],
    "too many": lambda x: x[0, 0, 0],
    "float": lambda x: x[1.0],
    "of a scalar": lambda x: x[0, 0][0],
    "list too far": lambda x: x[[5]],
    "mask of another shape": lambda x: x[[True, False]],
    "step of zero": lambda x: x[::0],
}


@pytest.mark.parametrize("index", BAD_INDICES)
def test_wrong_indices_raise_what_pytorch_raises(index):
    same_error(lambda lib: BAD_INDICES[index](lib.ones(3, 4)))


BAD_VIEWS = {
    "view of another size": lambda x: x.view(5),
    "view that needs a copy": lambda x: x.t().view(-1),
    "two unknown sizes": lambda x: x.view(-1, -1),
    "dimension out of range": lambda x: x.transpose(0, 2),
    "expand": lambda x: x.expand(4, 4),
    "narrow": lambda x: x.narrow(0, 2, 5),
    "squeeze": lambda x: x.squeeze(7),
}


@pytest.mark.parametrize("view", BAD_VIEWS)
def test_wrong_views_raise_what_pytorch_raises(view):
    ours, theirs = same_error(lambda lib: BAD_VIEWS[view](lib.ones(3, 4)))
    assert ours.split(" (")[0][:40] == theirs.split(" (")[0][:40]


# ---- Dtypes ----


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_operands_promote_as_in_pytorch(a, b):
    results = []
    for lib in (train, torch):
        one, other = getattr(lib, a), getattr(lib, b)
        x, y, scalar = lib.ones(2, dtype=one), lib.ones(2, dtype=other), lib.ones((), dtype=other)
        results.append([name(t.dtype) for t in (x + y, x * scalar, x / y, x == y, *(x * n for n in NUMBERS))])
    assert results[0] == results[1]


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_in_place_results_must_fit(a, b):
    def run(lib):
        x = lib.ones(2, dtype=getattr(lib, a))
        x *= lib.full((2,), 1, dtype=getattr(lib, b))
        return name(x.dtype), x.tolist()

    try:
        wanted = run(torch)
    except RuntimeError:
        ours, theirs = same_error(run)
        assert ours.split(":")[0][:30] == theirs.split(":")[0][:30]
    else:
        assert run(train) == wanted


@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions_round_and_cut_alike(dtype):
    x, y = both(np.array([0.0, 1.0, 0.5, 2.5, 3.49, 100.0, 65.999]))
    same(x.to(getattr(train, dtype)), y.to(getattr(torch, dtype)))


# ---- Other libraries ----


def test_numpy_sees_strides_and_writes():
    x = train.arange(6.0).reshape(2, 3).t()
    array = x.numpy()
    assert array.strides == (4, 12)
    array[2, 1] = 50
    assert x[2, 1].item() == 50.0
    assert np.asarray(x).ctypes.data == x.data_ptr()


def test_an_array_lives_as_long_as_its_tensor():
    array = np.arange(3.0)
    alive = weakref.ref(array)
    x = train.from_numpy(array)
    del array
    gc.collect()
    assert alive() is not None and x.tolist() == [0.0, 1.0, 2.0]
    del x
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("array", [np.arange(3.0)[::-1], np.array(["a"]), [1, 2]], ids=str)
def test_arrays_that_no_tensor_can_view_are_refused(array):
    same_error(lambda lib: lib.from_numpy(array))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_carries_both_ways_without_a_copy(dtype):
    x = train.arange(6).reshape(2, 3).to(getattr(train, dtype)).t()
    theirs = torch.from_dlpack(x)
    assert theirs.data_ptr() == x.data_ptr() and theirs.stride() == x.stride()
    same(x, theirs)
    back = train.from_dlpack(theirs)
    assert back.data_ptr() == x.data_ptr()
    same(back, theirs)


def test_a_batch_of_the_loader_becomes_a_tensor_without_a_copy():
    import infeed

    with infeed.Loader(infeed.datasets.Synthetic(8, {"x": "float32"}), 4, output="dlpack") as loader:
        batch = next(iter(loader))
        x = train.as_tensor(batch["x"])
        assert x.data_ptr() == np.asarray(batch["x"]).ctypes.data


REFUSALS = {
    "numpy of a tracked tensor": lambda lib: lib.ones(2, requires_grad=True).numpy(),
    "numpy of bfloat16": lambda lib: lib.ones(2).bfloat16().numpy(),
    "numpy of meta": lambda lib: lib.ones(2, device="meta").numpy(),
    "item of several": lambda lib: lib.ones(3).item(),
    "truth of several": lambda lib: bool(lib.ones(3)),
    "truth of none": lambda lib: bool(lib.ones(0)),
    "length of a scalar": lambda lib: len(lib.tensor(1)),
    "walk over a scalar": lambda lib: list(lib.tensor(1)),
    "float as an index": lambda lib: [0][lib.tensor(0.0)],
    "integers with a gradient": lambda lib: lib.tensor([1], requires_grad=True),
    "shapes that do not broadcast": lambda lib: lib.ones(2) + lib.ones(3),
    "matrices that do not fit": lambda lib: lib.ones(2, 3) @ lib.ones(2, 3),
    "copy of a result": lambda lib: copy.deepcopy(lib.ones(1, requires_grad=True) * 2),
    "a gradient of another shape": lambda lib: setattr(lib.ones(2), "grad", lib.ones(3)),
    "a gradient of another dtype": lambda lib: setattr(lib.ones(2), "grad", lib.ones(2).double()),
    "a gradient that is no tensor": lambda lib: setattr(lib.ones(2), "grad", 1),
    "stacks of unequal shapes": lambda lib: lib.stack([lib.ones(2), lib.ones(3)]),
    "no tensors to join": lambda lib: lib.cat([]),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_refusals_are_pytorchs(refusal):
    ours, theirs = same_error(REFUSALS[refusal])
    assert ours[:25].lower() == theirs[:25].lower()


# ---- Python's side ----


def test_one_tensor_is_one_object():
    x = train.ones(2, requires_grad=True)
    x.sum().backward()
    assert x.grad is x.grad and x.to("cpu") is x and x.contiguous() is x and x.requires_grad_() is x
    assert (x.detach() is x, x.add_.__self__ is x) == (False, True)


def test_tensors_take_attributes_weak_references_and_keys():
    x = train.ones(2)
    x.label = "name"
    assert weakref.ref(x)() is x and {x: 1}[x] == 1 and x.label == "name"


def test_copies_and_pickles_keep_values_and_flags():
    x = train.ones(2, 3, requires_grad=True)
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.copy(x)):
        assert made.requires_grad and train.equal(made, x)
    assert pickle.loads(pickle.dumps(train.float16)) is train.float16
    assert pickle.loads(pickle.dumps(train.device("cpu"))) == train.device("cpu")


PRINTED = [1, 2.5, [1, 2], [[0.5, 1e-9], [3, 4]], [1e10, 1], [True, False], [float("nan"), float("inf")], []]


@pytest.mark.parametrize("data", PRINTED, ids=repr)
def test_tensors_print_as_pytorchs(data):
    assert repr(train.tensor(data)) == repr(torch.tensor(data))


def test_flags_are_printed():
    for lib in (train, torch):
        x = lib.ones(2, requires_grad=True)
        assert repr(x) == "tensor([1., 1.], requires_grad=True)"
        assert repr(x * 2) == "tensor([2., 2.], grad_fn=<MulBackward0>)"
    assert f"{train.tensor(2.5):.2f}" == "2.50"


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=30))
def test_any_floats_print_as_pytorchs(values):
    assert repr(train.tensor(values)) == repr(torch.tensor(values))


def test_sizes_are_tuples_that_count():
    x = train.ones(2, 3)
    assert x.shape == (2, 3) and x.shape.numel() == 6 and x.shape[1:].numel() == 3 and x.size(-1) == 3


def test_default_dtype_and_limits():
    assert (train.finfo(train.bfloat16).max, train.iinfo(train.uint8).max) == (
        torch.finfo(torch.bfloat16).max,
        torch.iinfo(torch.uint8).max,
    )
    train.set_default_dtype(train.float64)
    try:
        assert train.tensor(1.5).dtype is train.float64
    finally:
        train.set_default_dtype(train.float32)
