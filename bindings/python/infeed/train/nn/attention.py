"""Attention and the transformer's encoder layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from infeed.train import _train
from infeed.train._train import Tensor
from infeed.train.nn import functional as F
from infeed.train.nn import init
from infeed.train.nn.containers import ModuleList
from infeed.train.nn.layers import Dropout, Linear, _empty
from infeed.train.nn.module import Module
from infeed.train.nn.normalization import LayerNorm


def _added(mask: Tensor | None, like: Tensor) -> Tensor | None:
    """A mask of bools (True: left out) as numbers to add."""
    if mask is None or mask.dtype is not _train.bool_:
        return mask
    return _train.zeros_like(mask, dtype=like.dtype).masked_fill(mask, float("-inf"))


class MultiheadAttention(Module):
    """Heads of scaled dot product attention between two linear layers. [L, N, E], or [N, L, E] if batch_first."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        if embed_dim % num_heads != 0:
            raise AssertionError("embed_dim must be divisible by num_heads")
        if add_bias_kv or add_zero_attn or kdim not in (None, embed_dim) or vdim not in (None, embed_dim):
            raise NotImplementedError("MultiheadAttention: kdim, vdim, add_bias_kv, add_zero_attn are not supported")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.batch_first = dropout, batch_first
        place = {"device": device, "dtype": dtype}
        self.in_proj_weight = _empty(3 * embed_dim, embed_dim, **place)
        self.register_parameter("in_proj_bias", _empty(3 * embed_dim, **place) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, **place)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attention's output, and its weights if wanted. In bool masks True leaves out."""
        if query.ndim == 2:
            q, k, v = (x.unsqueeze(0 if self.batch_first else 1) for x in (query, key, value))
            out, weights = self.forward(
                q,
                k,
                v,
                None if key_padding_mask is None else key_padding_mask.unsqueeze(0),
                need_weights,
                attn_mask,
                average_attn_weights,
                is_causal,
            )
            return out.squeeze(0 if self.batch_first else 1), None if weights is None else weights.squeeze(0)
        if not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k, v = (self._heads(x) for x in self._projected(query, key, value))
        if is_causal and attn_mask is None and (need_weights or key_padding_mask is not None):
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        mask = self._mask(q, k, key_padding_mask, attn_mask)
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            mixed, weights = self._mixed_with_weights(q, k, v, mask, dropout)
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            only_causal = is_causal and key_padding_mask is None  # the mask, if given, is that one
            mixed = F.scaled_dot_product_attention(q, k, v, None if only_causal else mask, dropout, only_causal)
        out = self.out_proj(mixed.transpose(1, 2).flatten(2))
        return out if self.batch_first else out.transpose(0, 1), weights

    def _mixed_with_weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
    ) -> tuple[Tensor, Tensor]:
        scores = _train.matmul(q * self.head_dim**-0.5, k.transpose(-2, -1))
        weights = F.softmax(scores if mask is None else scores + mask, -1)
        weights = F.dropout(weights, dropout, dropout > 0.0)
        return _train.matmul(weights, v), weights

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        weight, bias = self.in_proj_weight, self.in_proj_bias
        if query is key and key is value:
            return F.linear(query, weight, bias).chunk(3, -1)
        weights = weight.chunk(3)
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        return tuple(F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _mask(self, q: Tensor, k: Tensor, padding: Tensor | None, mask: Tensor | None) -> Tensor | None:
        mask = _added(mask, q)
        if mask is not None and mask.ndim == 3:  # [N * heads, L, S]
            mask = mask.view(q.shape[0], self.num_heads, q.shape[2], k.shape[2])
        padding = _added(padding, q)
        if padding is None:
            return mask
        padding = padding.view(q.shape[0], 1, 1, k.shape[2])
        return padding if mask is None else mask + padding


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward part, each with a residual connection and a layer norm."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        place = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **place
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **place)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        if isinstance(activation, str) and activation not in ("relu", "gelu"):
            raise RuntimeError(f"activation should be relu/gelu, not {activation}")
        self.activation = getattr(F, activation) if isinstance(activation, str) else activation

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        x = src
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = x + self._attend(self.norm1(x), *masks)
            return x + self._feed(self.norm2(x))
        x = self.norm1(x + self._attend(x, *masks))
        return self.norm2(x + self._feed(x))

    def _attend(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        out, _ = self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)
        return self.dropout1(out)

    def _feed(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Copies of one encoder layer in a row."""

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        import copy

        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, is_causal)
        return x if self.norm is None else self.norm(x)


def causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """[size, size]: -inf above the diagonal."""
    return _train.full((size, size), float("-inf"), device=device, dtype=dtype).triu(1)


class Transformer:
    """Holder of PyTorch's name for the mask."""

    generate_square_subsequent_mask = staticmethod(causal_mask)
