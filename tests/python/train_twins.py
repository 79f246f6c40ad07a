"""The same computation in infeed.train and in torch, and their results beside each other."""

import pytest
from infeed import train

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

# Units in the last place that sums of a few hundred products may lose, relative to the largest value.
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


def both(array, dtype=None, requires_grad=False):
    """A leaf in each library, with memory of its own."""
    ours = train.from_numpy(np.array(array, order="K"))
    theirs = torch.from_numpy(np.array(array, order="K"))
    if dtype is not None:
        ours, theirs = ours.to(getattr(train, dtype)), theirs.to(getattr(torch, dtype))
    return ours.requires_grad_(requires_grad), theirs.requires_grad_(requires_grad)


def as_numpy(tensor):
    tensor = tensor.detach()
    return tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy()


def name(dtype):
    return str(dtype).partition(".")[2]


def same(ours, theirs, what=""):
    """Dtype, shape and values, to the tolerance of the dtype."""
    assert name(ours.dtype) == name(theirs.dtype), what
    assert tuple(ours.shape) == tuple(theirs.shape), what
    got, want = as_numpy(ours), as_numpy(theirs)
    tolerance = TOLERANCE.get(name(theirs.dtype), 0)
    finite = want[np.isfinite(want)] if want.dtype.kind == "f" else want
    scale = max(1.0, float(np.abs(finite).max())) if finite.size and want.dtype.kind == "f" else 0.0
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def same_gradients(ours, theirs, what=""):
    for mine, other in zip(ours, theirs):
        if other.grad is None:
            assert mine.grad is None, what
        else:
            same(mine.grad, other.grad, f"gradient of {what}")


def same_error(run, *types):
    """Both raise; infeed's text holds the first line of torch's, up to the names of the libraries."""
    with pytest.raises(types or Exception) as theirs:
        run(torch)
    with pytest.raises(types or type(theirs.value)) as ours:
        run(train)
    assert isinstance(ours.value, type(theirs.value))
    return str(ours.value), str(theirs.value)


def copy_state(theirs, ours):
    """torch's parameters and buffers into a module of infeed.train."""
    return ours.load_state_dict(
        {key: train.from_numpy(value.numpy().copy()) for key, value in theirs.state_dict().items()}
    )
