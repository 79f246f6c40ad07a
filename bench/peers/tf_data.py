"""tf.data: threads, partial JPEG decoding, bilinear without antialiasing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from peers import works


def make(work: str, workers: int, batch_size: int, data: Path, variant: str = "") -> Iterator[tuple]:
    build = {"W1a": images, "W1b": images, "W2": tiny_rows, "W3": token_windows}[work]
    options = tf.data.Options()
    options.threading.private_threadpool_size = workers
    options.threading.max_intra_op_parallelism = 1
    return build(work, workers, batch_size, data).with_options(options).as_numpy_iterator()


def images(work: str, workers: int, batch_size: int, data: Path) -> tf.data.Dataset:
    files, labels = works.image_files(data)
    read = read_train if work == "W1a" else read_eval
    dataset = tf.data.Dataset.from_tensor_slices((files, labels)).shuffle(len(files)).repeat()
    dataset = dataset.map(read, num_parallel_calls=workers, deterministic=False)
    return dataset.batch(batch_size, drop_remainder=True).prefetch(2)


def read_train(file: Any, label: Any) -> tuple[Any, Any]:
    content = tf.io.read_file(file)
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.io.extract_jpeg_shape(content),
        tf.zeros((1, 0, 4)),
        min_object_covered=0.0,
        aspect_ratio_range=(3 / 4, 4 / 3),
        area_range=(0.08, 1.0),
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.concat((begin[:2], size[:2]), 0)
    pixels = tf.image.resize(tf.io.decode_and_crop_jpeg(content, window, channels=3), (224, 224))
    pixels = tf.image.random_flip_left_right(pixels)
    return tf.transpose(pixels * works.SCALE + works.OFFSET, (2, 0, 1)), label


def read_eval(file: Any, label: Any) -> tuple[Any, Any]:
    content = tf.io.read_file(file)
    shape = tf.io.extract_jpeg_shape(content)[:2]
    side = tf.cast(tf.round(tf.cast(tf.reduce_min(shape), tf.float32) * 224 / 256), tf.int32)
    window = tf.concat(((shape - side) // 2, (side, side)), 0)
    pixels = tf.image.resize(tf.io.decode_and_crop_jpeg(content, window, channels=3), (224, 224))
    return tf.cast(pixels + 0.5, tf.uint8), label


def tiny_rows(work: str, workers: int, batch_size: int, data: Path) -> tf.data.Dataset:
    dataset = tf.data.Dataset.from_tensor_slices(works.tiny_rows()).shuffle(4096).repeat()
    return dataset.batch(batch_size, drop_remainder=True).prefetch(4)


def token_windows(work: str, workers: int, batch_size: int, data: Path) -> tf.data.Dataset:
    all_tokens = tf.constant(works.tokens(data)[: 16 << 20])
    limit = all_tokens.shape[0] - works.SEQUENCE

    def window(draw: Any) -> tuple[Any, Any]:
        row = tf.cast(tf.slice(all_tokens, (draw % limit,), (works.SEQUENCE + 1,)), tf.int64)
        return row[:-1], row[1:]

    dataset = tf.data.Dataset.random().map(window, num_parallel_calls=workers, deterministic=False)
    return dataset.batch(batch_size, drop_remainder=True).prefetch(4)
