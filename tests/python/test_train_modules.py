"""nn: registration, hooks, state_dict, layers with PyTorch's values for the same seed."""

import copy
import pickle

import pytest
from infeed import train
from infeed.train import nn
from train_twins import both, copy_state, np, same, same_gradients, torch

LAYERS = {
    "linear": (lambda nn: nn.Linear(5, 3), (4, 5)),
    "linear without bias": (lambda nn: nn.Linear(5, 3, bias=False), (2, 4, 5)),
    "conv1d": (lambda nn: nn.Conv1d(3, 4, 3, stride=2, padding=1), (2, 3, 9)),
    "conv2d": (lambda nn: nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=1, dilation=(1, 2), groups=2), (2, 4, 9, 8)),
    "conv2d same": (lambda nn: nn.Conv2d(3, 4, 4, padding="same"), (2, 3, 7, 7)),
    "conv_transpose2d": (lambda nn: nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1), (2, 4, 5, 5)),
    "max_pool2d": (lambda nn: nn.MaxPool2d(3, 2, 1), (2, 3, 9, 8)),
    "avg_pool2d": (lambda nn: nn.AvgPool2d(2), (2, 3, 8, 6)),
    "adaptive_avg_pool2d": (lambda nn: nn.AdaptiveAvgPool2d((3, 1)), (2, 3, 8, 7)),
    "batch_norm1d": (lambda nn: nn.BatchNorm1d(5), (8, 5)),
    "batch_norm1d of sequences": (lambda nn: nn.BatchNorm1d(5, momentum=None), (4, 5, 3)),
    "batch_norm2d": (lambda nn: nn.BatchNorm2d(3, eps=1e-3, momentum=0.3), (4, 3, 5, 4)),
    "batch_norm2d plain": (lambda nn: nn.BatchNorm2d(3, affine=False, track_running_stats=False), (4, 3, 5, 4)),
    "layer_norm": (lambda nn: nn.LayerNorm((4, 5)), (3, 4, 5)),
    "group_norm": (lambda nn: nn.GroupNorm(2, 6), (3, 6, 4, 4)),
    "gelu": (lambda nn: nn.GELU(), (3, 4)),
    "gelu tanh": (lambda nn: nn.GELU("tanh"), (3, 4)),
    "silu": (lambda nn: nn.SiLU(), (3, 4)),
    "elu": (lambda nn: nn.ELU(0.7), (3, 4)),
    "leaky_relu": (lambda nn: nn.LeakyReLU(0.2), (3, 4)),
    "softplus": (lambda nn: nn.Softplus(2.0, 5.0), (3, 4)),
    "log_softmax": (lambda nn: nn.LogSoftmax(1), (3, 4)),
    "flatten": (lambda nn: nn.Flatten(), (3, 4, 2)),
    "encoder layer": (lambda nn: nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True), (2, 5, 8)),
    "encoder layer, norm first": (lambda nn: nn.TransformerEncoderLayer(8, 2, 16, 0.0, norm_first=True), (5, 2, 8)),
}


def seeded(make):
    train.manual_seed(7)
    torch.manual_seed(7)
    return make(nn), make(torch.nn)


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_begin_with_pytorchs_values(layer):
    ours, theirs = seeded(LAYERS[layer][0])
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for key, value in theirs.state_dict().items():
        same(ours.state_dict()[key], value, key)


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_compute_what_pytorchs_do(layer):
    make, shape = LAYERS[layer]
    ours, theirs = seeded(make)
    x, y = both(np.random.default_rng(0).standard_normal(shape).astype(np.float32), requires_grad=True)
    out, want = ours(x), theirs(y)
    same(out, want, layer)
    (out * out).sum().backward()
    (want * want).sum().backward()
    same_gradients([x, *ours.parameters()], [y, *theirs.parameters()], layer)
    for key, value in theirs.named_buffers():
        same(dict(ours.named_buffers())[key], value, key)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True, "batch_first": True}])
def test_recurrent_layers_compute_what_pytorchs_do(kind, options):
    ours, theirs = seeded(lambda nn: getattr(nn, kind)(3, 4, **options))
    x, y = both(np.random.default_rng(0).standard_normal((5, 2, 3)).astype(np.float32), requires_grad=True)
    (out, _), (want, _) = ours(x), theirs(y)
    same(out, want)
    out.sum().backward()
    want.sum().backward()
    same_gradients([x, *ours.parameters()], [y, *theirs.parameters()])


def test_attention_returns_its_weights():
    ours, theirs = seeded(lambda nn: nn.MultiheadAttention(8, 2))
    x, y = both(np.random.default_rng(0).standard_normal((5, 3, 8)).astype(np.float32))
    mask, other = both(np.triu(np.ones((5, 5), bool), 1))
    for out, want in zip(ours(x, x, x, attn_mask=mask), theirs(y, y, y, attn_mask=other)):
        same(out, want)


def test_embedding_skips_the_gradient_of_its_padding():
    ours, theirs = seeded(lambda nn: nn.Embedding(6, 3, padding_idx=2))
    x, y = both(np.array([[0, 2, 5], [5, 5, 2]]))
    same(ours(x), theirs(y))
    ours(x).sum().backward()
    theirs(y).sum().backward()
    same_gradients(ours.parameters(), theirs.parameters())


def test_a_loaded_torch_model_predicts_the_same():
    make = lambda nn: nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    ours, theirs = make(nn), make(torch.nn)
    assert str(copy_state(theirs, ours)) == "<All keys matched successfully>"
    x, y = both(np.random.default_rng(1).random((3, 1, 8, 8), np.float32))
    same(ours.eval()(x), theirs.eval()(y))


# ---- Hooks ----


def test_hooks_run_in_pytorchs_order():
    def calls(lib):
        log = []
        module = lib.nn.Linear(2, 2)
        module.register_forward_hook(lambda *_: log.append("second"))
        module.register_forward_hook(lambda *_: log.append("first"), prepend=True)
        module.register_forward_pre_hook(lambda m, args, kwargs: log.append(sorted(kwargs)), with_kwargs=True)
        module.register_full_backward_pre_hook(lambda *_: log.append("before backward"))
        module.register_full_backward_hook(lambda m, i, o: log.append((len(i), len(o))))
        module(input=lib.ones(3, 2, requires_grad=True)).sum().backward()
        module(lib.ones(3, 2, requires_grad=True)).sum().backward()
        return log

    assert calls(train) == calls(torch)


def test_a_backward_hook_may_replace_the_gradient():
    module = nn.Linear(2, 2)
    module.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] * 0 + 5,))
    x = train.ones(1, 2, requires_grad=True)
    module(x).sum().backward()
    assert x.grad.tolist() == [[5.0, 5.0]]


def test_hooks_of_state_dicts_run():
    log, module = [], nn.Linear(1, 1)
    module.register_state_dict_post_hook(lambda m, state, prefix, meta: log.append(sorted(state)))
    module.register_load_state_dict_post_hook(lambda m, keys: log.append(keys.missing_keys))
    module.load_state_dict(module.state_dict())
    assert log == [["bias", "weight"], []]


# ---- Copies ----


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_copies_of_a_module_are_of_their_own(copied):
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    other = copied(module)
    with train.no_grad():
        other[0].weight.fill_(9.0)
    assert isinstance(other[0].weight, nn.Parameter) and other[0].weight.requires_grad
    assert module[0].weight.max().item() < 9.0
    assert train.equal(module[1].running_var, other[1].running_var)


def test_tied_parameters_are_listed_once():
    module = nn.Module()
    module.a, module.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    module.b.weight = module.a.weight
    assert [name for name, _ in module.named_parameters()] == ["a.weight"]
    assert list(module.state_dict()) == ["a.weight", "b.weight"]


def test_assigned_state_replaces_the_parameters():
    module = nn.Linear(2, 2)
    state = {"weight": train.zeros(2, 2), "bias": train.ones(2)}
    module.load_state_dict(state, assign=True)
    assert module.weight.data_ptr() == state["weight"].data_ptr() and isinstance(module.weight, nn.Parameter)


def test_lists_and_dicts_of_parameters_register_them():
    module = nn.Module()
    module.list = nn.ParameterList([train.ones(1), train.ones(2)])
    module.dict = nn.ParameterDict({"x": train.ones(3)})
    assert [name for name, _ in module.named_parameters()] == ["list.0", "list.1", "dict.x"]
    assert len(module.list) == 2 and module.dict["x"].shape == (3,)
