"""The loaders that bench/compare.py sets beside each other. A new one is a file here and a line in LOADERS."""

from dataclasses import dataclass

WORKS = ("W1a", "W1b", "W2", "W3", "W4")
PLAIN: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class Loader:
    """What compare.py must know of a loader without importing its packages."""

    module: str
    """In this package, with `make(work, workers, batch_size, data, variant)`, or `command(...)` if `is_program`."""
    works: dict[str, tuple[str, ...]]
    """Work to its variants, the one that others are compared with first."""
    inline: bool = False
    """Whether it also runs in the caller alone."""
    ours: bool = False
    is_program: bool = False
    """Prints its own line of measure.py; its variants are kinds of workers."""

    def without_workers(self, work: str) -> tuple[str, ...]:
        """The variants that have a meaning there."""
        if not self.inline:
            return ()
        return self.works[work][:1] if self.is_program else self.works[work]


_IMAGES = {"W1a": PLAIN, "W1b": PLAIN}
_PYTHON_DATASETS = {
    "W1a": ("simplejpeg + cv2", "Pillow"),
    "W1b": ("simplejpeg + cv2", "Pillow"),
    "W2": ("torch rows", "numpy rows", "custom collate"),
    "W3": PLAIN,
    "W4": ("", "custom collate"),
}
_ONE_OF_EACH = {"W1a": PLAIN, "W1b": PLAIN, "W2": PLAIN, "W3": PLAIN, "W4": PLAIN}

LOADERS: dict[str, Loader] = {
    "infeed-engine": Loader(
        "infeed_engine", dict.fromkeys(WORKS, ("fork", "thread")), ours=True, is_program=True, inline=True
    ),
    "infeed": Loader("infeed_drop_in", _PYTHON_DATASETS, ours=True, inline=True),
    "infeed-native": Loader("infeed_native", dict.fromkeys(("W1a", "W1b", "W2", "W3"), ("fork", "thread")), ours=True),
    "torch": Loader("torch_loader", _PYTHON_DATASETS, inline=True),
    "tf.data": Loader("tf_data", {**_IMAGES, "W2": PLAIN, "W3": PLAIN}),
    "DALI": Loader("dali", {**_IMAGES, "W2": PLAIN}),
    "mlx-data": Loader("mlx_data", {**_IMAGES, "W2": PLAIN}),
    "SPDL": Loader("spdl_pipeline", {**_IMAGES, "W4": PLAIN}),
    "grain": Loader("grain_loader", _ONE_OF_EACH),
    "FFCV": Loader("ffcv_loader", _IMAGES),
}
