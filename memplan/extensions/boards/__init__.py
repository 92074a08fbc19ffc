"""Chips and boards, each with the kernels that its maker has for TensorFlow Lite Micro."""

from __future__ import annotations

from typing import Final

from memplan.extensions.boards import cmsis_nn, esp_nn
from memplan.programs.sources.options import Board

__all__ = ["BOARDS", "CHIPS", "KERNELS"]

KERNELS: Final = {"cmsis-nn": cmsis_nn.KERNELS, "esp-nn": esp_nn.KERNELS}

_ARM: Final = {"": "m0 m0+ m1 m3 m23", "dsp": "m4 m7 m33 m35p", "mve": "m52 m55 m85"}
_ESPRESSIF: Final = {
    "esp32": "esp32 esp32-s2 esp32-c2 esp32-c3 esp32-c5 esp32-c6 esp32-h2",
    "esp32-s3": "esp32-s3",
    "esp32-p4": "esp32-p4",
}
BOARDS: Final[dict[str, Board]] = {
    **{
        f"cortex-{core}": Board(f"cortex-{core}", 4, 1, "cmsis-nn", unit)
        for unit, cores in _ARM.items()
        for core in cores.split()
    },
    **{
        name: Board(name, 4, 4, "esp-nn", unit)
        for unit, names in _ESPRESSIF.items()
        for name in names.split()
    },
}

_CHIPS: Final = {
    "cortex-m0": "nrf51 stm32f0",
    "cortex-m0+": "pico rp2040 samd21 saml21 stm32c0 stm32g0 stm32l0 stm32u0",
    "cortex-m3": "stm32f1 stm32f2 stm32l1",
    "cortex-m4": "apollo3 apollo4 mk64 mk66 max78000 nrf52 psoc6 same51 samd51 stm32f3 stm32f4 "
    "stm32g4 stm32l4 stm32wb stm32wl",
    "cortex-m7": "imxrt same70 stm32f7 stm32h7 teensy4",
    "cortex-m33": "efr32mg24 lpc55 mcxn nrf53 nrf54 nrf91 pico2 rp2350 stm32h5 stm32l5 stm32u3 "
    "stm32u5 stm32wba",
    "cortex-m55": "alif apollo5 stm32n6",
    "cortex-m85": "ra8",
}
CHIPS: Final[dict[str, str]] = {
    chip: board for board, chips in _CHIPS.items() for chip in chips.split()
}
"""By the beginning of the name of a chip: the board that is its (larger) core."""
