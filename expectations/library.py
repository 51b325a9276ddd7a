"""Great Expectations, imported without the plotting and statistics packages it rarely needs.

Only two of its expectations use them, and they take 40 % of the import. The first use of such a
package imports it.
"""

import importlib
import logging
import os
import sys
import threading
from types import ModuleType

_PUT_OFF = ("scipy.stats", "altair")
_LOUD = ("great_expectations", "DataFrameQueryContextLogger")
"""Loggers that print exceptions with values of rows, although exceptions become outcomes."""


class _PutOff(ModuleType):
    """Stands for a module until something in it is asked for."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        _forget(self)
        return getattr(importlib.import_module(self.__name__), name)


def library() -> ModuleType:
    """The package `great_expectations`, without log messages and without telemetry.

    The first call takes about two seconds.
    """
    if "great_expectations" not in sys.modules:
        os.environ["GX_ANALYTICS_ENABLED"] = "false"
        for name in _LOUD:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        stands = [_stand_in(name) for name in _PUT_OFF if name not in sys.modules]
        try:
            importlib.import_module("great_expectations")
        finally:
            for stand in stands:
                _forget(stand)
    return importlib.import_module("great_expectations")


def preload() -> threading.Thread:
    """Begins the import in the background, so that it costs nothing while Spark is at work."""
    thread = threading.Thread(
        target=importlib.import_module,
        args=("expectations.evaluate",),
        name="expectations",
        daemon=True,
    )
    thread.start()
    return thread


def _stand_in(name: str) -> _PutOff:
    stand = _PutOff(name)
    sys.modules[name] = stand
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(importlib.import_module(parent), child, stand)
    return stand


def _forget(stand: _PutOff) -> None:
    parent, _, child = stand.__name__.rpartition(".")
    if sys.modules.get(stand.__name__) is stand:
        del sys.modules[stand.__name__]
    if parent and vars(sys.modules[parent]).get(child) is stand:
        delattr(sys.modules[parent], child)
