"""Element types under torch's names, however a user, a trace or a datasheet spells them."""

from __future__ import annotations

from ridgepole.errors import BadInput

BITS = {
    "float64": 64, "float32": 32, "float16": 16, "bfloat16": 16,
    "float8_e4m3fn": 8, "float8_e5m2": 8, "float8_e4m3fnuz": 8, "float8_e5m2fnuz": 8, "float8_e8m0fnu": 8,
    "float4_e2m1fn_x2": 8,
    "int64": 64, "int32": 32, "int16": 16, "int8": 8,
    "uint64": 64, "uint32": 32, "uint16": 16, "uint8": 8, "bool": 8,
    "complex32": 32, "complex64": 64, "complex128": 128,
    "quint8": 8, "qint8": 8, "qint32": 32,
}  # fmt: skip
"""Storage bits of one element, by torch's name."""

_ALIASES = {
    "fp64": "float64", "f64": "float64", "double": "float64",
    "fp32": "float32", "f32": "float32", "float": "float32",
    "fp16": "float16", "f16": "float16", "half": "float16", "c10::half": "float16",
    "bf16": "bfloat16", "c10::bfloat16": "bfloat16",
    "fp8": "float8_e4m3fn", "f8": "float8_e4m3fn", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
    "c10::float8_e4m3fn": "float8_e4m3fn", "c10::float8_e5m2": "float8_e5m2",
    "c10::float8_e4m3fnuz": "float8_e4m3fnuz", "c10::float8_e5m2fnuz": "float8_e5m2fnuz",
    "c10::float8_e8m0fnu": "float8_e8m0fnu", "c10::float4_e2m1fn_x2": "float4_e2m1fn_x2",
    "i64": "int64", "long": "int64", "long int": "int64", "long long": "int64",
    "i32": "int32", "int": "int32", "i16": "int16", "short": "int16", "short int": "int16",
    "i8": "int8", "signed char": "int8", "char": "int8",
    "u8": "uint8", "unsigned char": "uint8", "byte": "uint8",
    "unsigned int": "uint32", "unsigned short": "uint16", "unsigned long": "uint64",
    "c10::complex<float>": "complex64", "c10::complex<double>": "complex128", "c10::complex<c10::half>": "complex32",
    "c10::quint8": "quint8", "c10::qint8": "qint8", "c10::qint32": "qint32",
}  # fmt: skip


def parse(text: str) -> str:
    """torch's name for a dtype written any usual way ("bf16", "c10::BFloat16", "torch.bfloat16").

    Raises BadInput for a name that is none.
    """
    name = find(text)
    if name is None:
        raise BadInput(f"{text!r} is not a dtype: try bf16, f16, f32, f64, fp8, i8, i32, i64 or bool")
    return name


def find(text: str) -> str | None:
    """As `parse`, but None for a name that is none."""
    name = text.strip().lower().removeprefix("torch.")
    if name in BITS:
        return name
    return _ALIASES.get(name)


def itemsize(dtype: str) -> int:
    """Bytes of one stored element of `dtype` (torch's name)."""
    return BITS[dtype] // 8


def peak_key(dtype: str) -> str:
    """The name under which a machine's peak rate for `dtype` is kept: fp8 formats share one."""
    if dtype.startswith("float8"):
        return "float8"
    if dtype.startswith("float4"):
        return "float4"
    return dtype
