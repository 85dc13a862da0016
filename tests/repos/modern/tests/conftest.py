import os
import sys

import yaml
from google.cloud import storage

import helpers

try:
    import orjson
except ImportError:
    orjson = None

pytest_plugins = ["pytester", "modern_demo.testing", "pytest_httpserver"]
