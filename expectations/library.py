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
        _forget_stand_in(self)
        return getattr(importlib.import_module(self.__name__), name)


def import_great_expectations() -> ModuleType:
    """The package `great_expectations`, without log messages and without telemetry.

    The first call takes about two seconds.
    """
    if "great_expectations" not in sys.modules:
        _import_quietly()
    return importlib.import_module("great_expectations")


def preload() -> threading.Thread:
    """Begins the import in the background, so that it costs nothing while Spark is at work."""
    # Two threads that import PySpark at once would each find half of it.
    importlib.import_module("pyspark.sql")
    thread = threading.Thread(
        target=importlib.import_module,
        args=("expectations.evaluate",),
        name="expectations",
        daemon=True,
    )
    thread.start()
    return thread


def _import_quietly() -> None:
    # Great Expectations takes its setting of telemetry from the environment.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    for name in _LOUD:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    stand_ins = [_put_stand_in(name) for name in _PUT_OFF if name not in sys.modules]
    try:
        importlib.import_module("great_expectations")
    finally:
        for stand_in in stand_ins:
            _forget_stand_in(stand_in)


def _put_stand_in(name: str) -> _PutOff:
    """Puts a stand-in where an import of the module `name` finds it."""
    stand_in = _PutOff(name)
    sys.modules[name] = stand_in
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(importlib.import_module(parent), child, stand_in)
    return stand_in


def _forget_stand_in(stand_in: _PutOff) -> None:
    """Removes a stand-in, so that the next import finds the module itself."""
    parent, _, child = stand_in.__name__.rpartition(".")
    if sys.modules.get(stand_in.__name__) is stand_in:
        del sys.modules[stand_in.__name__]
    if parent and vars(sys.modules[parent]).get(child) is stand_in:
        delattr(sys.modules[parent], child)
