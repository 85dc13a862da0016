import six.moves
from modern_demo import core
