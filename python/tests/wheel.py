"""Tried by the Python of a fresh environment with the wheel in it and nothing else: the program is the wheel's, and a sweep works."""

from importlib.metadata import version

import heliostat
from heliostat import _binary, external

runs = heliostat.sweep({"topologies": "hybrid-8x2", "policies": ["c-through", "helios"], "workloads": "shuffle-8"})
assert runs.columns["state"] == ["done", "done"], runs.columns["error"]
assert _binary.find().startswith(heliostat.__file__.partition("/lib/")[0]), _binary.find()
assert heliostat.serve is external.serve
assert heliostat.__version__ == version("heliostat")
