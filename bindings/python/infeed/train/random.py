"""The state of the default generator."""

from infeed.train._train import default_generator, get_rng_state, initial_seed, manual_seed, set_rng_state

__all__ = ["default_generator", "get_rng_state", "initial_seed", "manual_seed", "set_rng_state"]
