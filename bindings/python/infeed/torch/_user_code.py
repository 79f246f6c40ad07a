"""A loader's own functions on their way to the workers."""

from __future__ import annotations

import functools
from typing import Any

from torch.utils.data import IterDataPipe, MapDataPipe, default_collate, default_convert
from torch.utils.data.dataloader import _sharding_worker_init_fn

from infeed._worker.fetchers import DEFAULT_COLLATE, DEFAULT_CONVERT
from infeed._worker.start import PickledUserCode, UserCode
from infeed._worker.team import pickle_errors_explained


def ours_for(collate_fn: Any, collate: Any, convert: Any) -> Any:
    """`collate` and `convert` in place of torch's functions, any other as it is; it need not be hashable."""
    if collate_fn is default_collate:
        return collate
    return convert if collate_fn is default_convert else collate_fn


def packaged(loader: Any, dataset: Any, ranks: tuple[int, int], forked: bool) -> UserCode | PickledUserCode:
    """What workers run of the user's: as it is where they are forked, else pickled. `ranks`: world_size and rank, for data pipes."""
    collate_fn = ours_for(loader.collate_fn, DEFAULT_COLLATE, DEFAULT_CONVERT)
    init_fn = loader.worker_init_fn
    if isinstance(dataset, (IterDataPipe, MapDataPipe)):
        init_fn = functools.partial(_sharding_worker_init_fn, init_fn, *ranks)
    if forked:
        return UserCode(dataset, collate_fn, init_fn)
    with pickle_errors_explained():
        return PickledUserCode(dataset, collate_fn, init_fn)
