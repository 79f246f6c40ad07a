"""Writes torch_golden.h: what torch's CPU generator gives, for the tests that run without torch.

Run it with the torch that TorchGenerator promises to equal:  python tests/base/torch_golden.py > tests/base/torch_golden.h
Long results are kept as a checksum: h = (h * 31 + value) mod 2^64 over all values.
"""

import torch

SEEDS = (0, 42, 2**64 - 1)


def generator(seed):
    # manual_seed takes the top half as negative numbers
    return torch.Generator().manual_seed(seed - 2**64 if seed >= 2**63 else seed)


def checksum(values):
    result = 0
    for value in values:
        result = (result * 31 + value) % 2**64
    return result


def next_draw(g):
    return torch.empty((), dtype=torch.int64).random_(generator=g).item()


def weights(n):
    return torch.tensor([i % 13 + 0.25 for i in range(n)], dtype=torch.float64)


CALLS = {
    "randperm(10)": lambda g: torch.randperm(10, generator=g),
    "randperm(100000)": lambda g: torch.randperm(100000, generator=g),
    "randint(-5, 7, 1000)": lambda g: torch.randint(-5, 7, (1000,), generator=g),
    "randint(0, 1 << 28, 1000)": lambda g: torch.randint(0, 1 << 28, (1000,), generator=g),
    "randint(0, 1 << 40, 1000)": lambda g: torch.randint(0, 1 << 40, (1000,), generator=g),
    "multinomial(1000, 500, true)": lambda g: torch.multinomial(weights(1000), 500, True, generator=g),
    "multinomial(1000, 500, false)": lambda g: torch.multinomial(weights(1000), 500, False, generator=g),
    "multinomial(1000, 10, false)": lambda g: torch.multinomial(weights(1000), 10, False, generator=g),
    "multinomial(1000, 1, true)": lambda g: torch.multinomial(weights(1000), 1, True, generator=g),
}


def main():
    print("#pragma once")
    print(f"/// Written by torch_golden.py with torch {torch.__version__.split('+')[0]}.")
    print("\n#include <cstdint>\n\nnamespace infeed {\n")
    print("/// The checksum of a call's result on a fresh generator, and the int64 that random_() draws after it.")
    print(
        "struct TorchGolden {\n  std::uint64_t seed;\n  const char* call;\n  std::uint64_t checksum;\n"
        "  std::int64_t next;\n};\n"
    )
    print("inline constexpr TorchGolden kTorchGoldens[] = {")
    for seed in SEEDS:
        for name, call in CALLS.items():
            g = generator(seed)
            values = call(g).tolist()
            print(f'    {{{seed}U, "{name}", {checksum(values)}U, {next_draw(g)}}},')
    print("};\n\n}  // namespace infeed")


if __name__ == "__main__":
    main()
