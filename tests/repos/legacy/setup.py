import os
import sys
from setuptools import setup, find_packages, Extension

here = os.path.dirname(__file__)
version = "1.2"

requires = ["six>=1.5", "simplejson"]
if sys.version_info < (3, 0):
    requires.append("unittest2")
else:
    requires += ["chardet"]
if sys.version_info < (3, 8):
    requires.append("importlib-metadata")
if os.environ.get("WITH_MPI"):
    requires.append("mpi4py")

with open(os.path.join(here, "requirements", "extra.txt")) as handle:
    extra = [line.strip() for line in handle if line.strip()]

tests = ["nose", "mock==2.0.0"]
print "building", version

try:
    from Cython.Build import cythonize
except ImportError, error:
    cythonize = None

setup(
    name="legacy-demo",
    version=version,
    packages=find_packages("lib"),
    package_dir={"": "lib"},
    python_requires=">=2.7",
    install_requires=requires + ["docutils"],
    extras_require={"extra": extra, "dev": tests + ["wheel"], ":python_version<'3'": ["futures"]},
    tests_require=tests,
    setup_requires=["setuptools_scm", "cffi>=1.0"],
    use_scm_version=True,
    cffi_modules=["lib/build_ffi.py:ffi"],
    ext_modules=[
        Extension("legacy._speed", sources=["lib/legacy/_speed.c"], optional=True),
        Extension("legacy._fast", ["lib/legacy/_fast.pyx"], language="c++"),
    ],
    classifiers=["Programming Language :: Python :: 2.7", "Programming Language :: Python :: 3.5"],
    test_suite="nose.collector",
)
