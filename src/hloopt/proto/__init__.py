"""HLO modules as protocol buffers: the `.pb` files that XLA dumps, and `.pbtxt`, these as text.

Needs the extra `proto`. Nothing else in hloopt imports this package until such a file is named.
"""

from hloopt.proto.decode import decode
from hloopt.proto.encode import encode, encode_file, encode_with_zeros, is_elided
from hloopt.proto.proto_text import decode_text, encode_text

__all__ = [
    "decode",
    "decode_text",
    "encode",
    "encode_file",
    "encode_text",
    "encode_with_zeros",
    "is_elided",
]
