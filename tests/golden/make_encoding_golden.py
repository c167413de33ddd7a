"""Writes tests/golden/encodings/blocks.json: blocks of each encoding and their values as gguf-py has them.

    pip install gguf==0.19.0 && python tests/golden/make_encoding_golden.py
"""

import json
import pathlib

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type

BLOCKS = 3  # of random bytes; then one of zero bits and one of ones, with the factors of the first
# Offsets of f16 factors; mxfp4 has the byte of an exponent.
FACTORS = {
    "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}


def factor_bytes(random):
    return np.float16(random.uniform(-4, 4) * 2.0 ** random.integers(-18, 8)).tobytes()


def blocks_of(name, random):
    size = GGML_QUANT_SIZES[Type[name]][1]
    rows = [bytearray(random.integers(0, 256, size, dtype=np.uint8).tobytes()) for _ in range(BLOCKS)]
    rows += [bytearray(size), bytearray(b"\xff" * size)]
    for row in rows:
        for at in FACTORS[name]:
            row[at : at + 2] = factor_bytes(random)
        if name == "MXFP4":
            row[0] = random.integers(0, 253)
    if name == "MXFP4":
        rows[0][0], rows[1][0] = 0, 1  # exponents whose powers are subnormal
    return rows


def main():
    random = np.random.default_rng(66)
    golden = {}
    for name in FACTORS:
        rows = blocks_of(name, random)
        data = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
        values = gguf.quants.dequantize(data, Type[name]).astype("<f4")
        golden[name.lower()] = [
            {"bytes": row.hex(), "values": value.tobytes().hex()} for row, value in zip(rows, values)
        ]
    path = pathlib.Path(__file__).parent / "encodings" / "blocks.json"
    path.write_text(json.dumps(golden, indent=0) + "\n")


main()
