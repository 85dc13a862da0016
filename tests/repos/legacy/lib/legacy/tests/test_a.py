import unittest
from nose.tools import eq_
