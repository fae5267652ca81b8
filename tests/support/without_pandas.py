"""A plugin of pytest (`-p tests.support.without_pandas`): importing pandas fails, as if it was not installed."""

import importlib.abc
import sys


class _NoPandas(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas' (hidden for these tests)", name="pandas")
        return


assert "pandas" not in sys.modules
sys.meta_path.insert(0, _NoPandas())
