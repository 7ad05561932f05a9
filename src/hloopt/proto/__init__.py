"""HLO modules as protocol buffers: the `.pb` files that XLA dumps.

Needs the extra `proto`. Nothing else in hloopt imports this package until a `.pb` file is named.
"""

from hloopt.proto.decode import decode
from hloopt.proto.encode import encode, encode_file

__all__ = ["decode", "encode", "encode_file"]
