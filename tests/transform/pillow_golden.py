"""Writes pillow_golden.bin: what Pillow and torchvision's arithmetic make of synthetic pictures.

Run with a Python that has Pillow and NumPy:  python tests/transform/pillow_golden.py

file: int32 number of cases; a case: int32 width, height, seed, number of ops; ops of five int32 (code, four values);
int32 result width, height; result as RGB bytes. Little-endian. The pictures are those of picture.h.
"""

import pathlib
import struct

import numpy as np
from PIL import Image

CROP, RESIZE, SHORTER, CENTER, FLIP = range(5)


def picture(width, height, seed):
    y, x, c = np.meshgrid(*(np.arange(n, dtype=np.uint32) for n in (height, width, 3)), indexing="ij")
    h = x * np.uint32(0x9E3779B1) ^ y * np.uint32(0x85EBCA77) ^ (c + np.uint32(3 * seed)) * np.uint32(0xC2B2AE3D)
    h ^= h >> np.uint32(15)
    h *= np.uint32(0x2C1B3C6D)
    h ^= h >> np.uint32(12)
    noise = h & np.uint32(255)
    kinds = [noise, (x * 5 + y * 3 + c * 40) & np.uint32(255), np.where(noise > 127, 255, 0)]
    return Image.fromarray(kinds[seed % 3].astype(np.uint8))


def center_crop(image, height, width):
    """torchvision.transforms.functional.center_crop: pads with zeros, offsets by Python's round()."""
    w, h = image.size
    if width > w or height > h:
        left, top = max(0, (width - w) // 2), max(0, (height - h) // 2)
        right, bottom = max(0, (width - w + 1) // 2), max(0, (height - h + 1) // 2)
        padded = Image.new("RGB", (w + left + right, h + top + bottom))
        padded.paste(image, (left, top))
        image, (w, h) = padded, padded.size
    top, left = round((h - height) / 2.0), round((w - width) / 2.0)
    return image.crop((left, top, left + width, top + height))


def shorter(image, size):
    """torchvision.transforms.functional.resize with one size."""
    w, h = image.size
    short, long = min(w, h), max(w, h)
    new_short, new_long = size, int(size * long / short)
    return image.resize((new_short, new_long) if w <= h else (new_long, new_short), Image.BILINEAR)


def apply(image, op):
    code, a, b, c, d = op
    if code == CROP:
        return image.crop((a, b, a + c, b + d))
    if code == RESIZE:
        return image.resize((a, b), Image.BILINEAR)
    if code == SHORTER:
        return shorter(image, a)
    if code == CENTER:
        return center_crop(image, a, b)
    return image.transpose(Image.FLIP_LEFT_RIGHT)


def resize_cases():
    for size, targets in {
        (100, 80): [(50, 40), (37, 29), (99, 79), (64, 64), (20, 20), (7, 5), (1, 1), (26, 21), (100, 41), (33, 80)],
        (300, 200): [(33, 22), (17, 70), (80, 55)],
        (500, 375): [(28, 21), (64, 48)],
        (10, 8): [(40, 32), (11, 9), (64, 3)],
        (1, 1): [(9, 7), (1, 1)],
        (2, 3): [(31, 17), (1, 1)],
        (17, 1): [(5, 20), (34, 2)],
        (1, 23): [(4, 6)],
        (1000, 30): [(10, 3), (40, 40)],
        (4000, 3): [(5, 3), (31, 2)],
        (3, 3000): [(7, 4)],
        (12000, 2): [(4, 2), (1, 1)],
        (1200, 900): [(3, 3), (1, 1)],
    }.items():
        for seed, target in enumerate(targets):
            yield size, seed, [(RESIZE, *target, 0, 0)]


def chain_cases():
    crop = (CROP, 3, 5, 40, 30)
    flip = (FLIP, 0, 0, 0, 0)
    for seed, ops in enumerate(
        [
            [crop, (RESIZE, 22, 17, 0, 0), flip],  # RandomResizedCrop: taps end at the crop
            [(CROP, 60, 50, 40, 30), (RESIZE, 64, 48, 0, 0)],
            [(CROP, 0, 0, 90, 9), (RESIZE, 32, 32, 0, 0), flip],
            [flip, (CROP, 11, 2, 50, 71), (RESIZE, 40, 40, 0, 0)],
            [(CROP, 99, 79, 1, 1), (RESIZE, 5, 5, 0, 0)],
            [(SHORTER, 32, 0, 0, 0), (CENTER, 28, 28, 0, 0)],
            [(SHORTER, 33, 0, 0, 0), (CENTER, 28, 28, 0, 0), flip],
            [flip, (SHORTER, 33, 0, 0, 0), (CENTER, 28, 25, 0, 0)],
            [(SHORTER, 20, 0, 0, 0), (CENTER, 33, 24, 0, 0)],
            [(SHORTER, 21, 0, 0, 0), (CENTER, 40, 41, 0, 0), flip],
            [(CENTER, 31, 40, 0, 0)],
            [(CENTER, 31, 40, 0, 0), flip],
            [(CENTER, 90, 45, 0, 0), flip],
            [(CENTER, 111, 121, 0, 0), (RESIZE, 40, 40, 0, 0)],
            [(CENTER, 111, 61, 0, 0), flip, (CROP, 2, 3, 50, 100), (RESIZE, 33, 48, 0, 0), (CENTER, 50, 20, 0, 0)],
            [crop],
            [flip, crop],
        ]
    ):
        for size in ((100, 80), (75, 101)):
            if all(op[0] != CROP or size == (100, 80) for op in ops):
                yield size, seed, ops


def main():
    cases = [*resize_cases(), *chain_cases()]
    out = [struct.pack("<i", len(cases))]
    for (width, height), seed, ops in cases:
        image = picture(width, height, seed)
        for op in ops:
            image = apply(image, op)
        out.append(struct.pack("<4i", width, height, seed, len(ops)))
        out += [struct.pack("<5i", *op) for op in ops]
        out.append(struct.pack("<2i", *image.size) + image.tobytes())
    path = pathlib.Path(__file__).with_name("pillow_golden.bin")
    path.write_bytes(b"".join(out))
    print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
