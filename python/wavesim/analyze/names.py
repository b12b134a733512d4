"""Kernel names that fit a line."""

from __future__ import annotations

import re

_PARAMETERS = re.compile(r"\((?!anonymous namespace\)).*$", re.DOTALL)
_FUNCTOR = re.compile(r"(\w*Functor\w*|\w+(?:KernelImpl|_kernel_cuda|_kernel_impl|Ops?))\b")
_GENERIC = {"Kernel", "Kernel2", "device_kernel", "kernel"}
_ANONYMOUS = "(anonymous namespace)::"


def short_name(name: str, width: int = 48) -> str:
    """Shorten a demangled C++ name to what tells kernels apart.

    Return type, namespaces, parameters and template arguments go, except the innermost name of a
    functor in them, which is what tells one elementwise kernel from another:
    ``vectorized_elementwise_kernel<GeluCUDAKernelImpl>``. Names of other languages stay. At most
    ``width`` characters, cut in the middle.
    """
    text = name.replace(_ANONYMOUS, "")
    head, angle, inside = text.partition("<")
    if not angle:
        head = _PARAMETERS.sub("", text)
    base = head.removeprefix("void ").split("::")[-1].strip() or name.strip()
    if base in _GENERIC and inside:  # a wrapper: its argument says what it is
        return _cut(re.split(r"[<,>(]", inside)[0].split("::")[-1].strip() or base, width)
    found = [name for name in _FUNCTOR.findall(inside) if not name.startswith("gpu_kernel_impl")]
    functor = f"<{found[0]}>" if found else ""
    room = width - len(functor)
    if len(base) > room >= 12:
        return f"{_cut(base, room)}{functor}"
    return _cut(base + functor, width)


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    tail = (width - 3) // 2
    return f"{text[: width - 3 - tail]}...{text[-tail:]}"
