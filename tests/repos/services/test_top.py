import unittest


class T(unittest.TestCase):
    pass
