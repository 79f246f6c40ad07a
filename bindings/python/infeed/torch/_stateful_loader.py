"""infeed.torch.StatefulDataLoader: torchdata's class, order and states on infeed's workers and transport."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import torch
from torch.utils.data import Dataset, Sampler
from torch.utils.data.dataloader import _DatasetKind

from infeed.torch import samplers
from infeed.torch._loader import DataLoader
from infeed.torch._stateful_multi import warn_of_order
from infeed.torch._stateful_order import SamplerOrder

_T_co = TypeVar("_T_co", covariant=True)


class StatefulDataLoader(DataLoader[_T_co]):
    """`torchdata.stateful_dataloader.StatefulDataLoader`: same arguments, order, values, seeds, errors and states.

    A checkpoint that either wrote is read by the other. The shuffled order for a seed is torchdata's, which is not
    that of `torch.utils.data.DataLoader`, and differs by num_workers.

    Args:
        snapshot_every_n_steps: Batches from one snapshot of the workers' states to the next. Default 1. More saves
            time where states are large; a resume then makes up to that many batches again. 0, None: at the start only.

    The other arguments are those of `infeed.torch.DataLoader`.
    """

    _order_type = SamplerOrder
    _awaits_workers = True
    _keeps_iterator = True

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int | Literal["auto"] = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        snapshot_every_n_steps: int | None = 1,
        memory_limit: int | None = None,
        max_restarts: int = 0,
        order: Literal["strict", "ready"] | None = None,
        device: torch.device | str | int | None = None,
        prefetch_to_device: int = 2,
        compute_stream: torch.cuda.Stream | None = None,
        memory_budget: int | None = None,
    ) -> None:
        super().__init__(
            dataset,
            batch_size=batch_size,
            shuffle=shuffle,
            sampler=sampler,
            batch_sampler=batch_sampler,
            num_workers=num_workers,
            collate_fn=collate_fn,
            pin_memory=pin_memory,
            drop_last=drop_last,
            timeout=timeout,
            worker_init_fn=worker_init_fn,
            multiprocessing_context=multiprocessing_context,
            generator=generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=pin_memory_device,
            in_order=in_order,
            memory_limit=memory_limit,
            max_restarts=max_restarts,
            order=order,
            device=device,
            prefetch_to_device=prefetch_to_device,
            compute_stream=compute_stream,
            memory_budget=memory_budget,
        )
        self.snapshot_every_n_steps = snapshot_every_n_steps
        if self.num_workers > 0 and not self.in_order:
            warn_of_order()
        self._replace_samplers(
            shuffles=bool(shuffle) and self._dataset_kind == _DatasetKind.Map,
            batches=batch_sampler is None and batch_size is not None,
        )

    def _replace_samplers(self, shuffles: bool, batches: bool) -> None:
        """Puts samplers with states in the place of torch's defaults. torch locks these attributes by now."""
        if shuffles and not isinstance(self.sampler, samplers.ShuffleOfNone):
            self.__dict__["sampler"] = samplers.RandomSampler(self.dataset, generator=self.generator)
        if batches:
            self.__dict__["batch_sampler"] = samplers.BatchSampler(self.sampler, self.batch_size, self.drop_last)
