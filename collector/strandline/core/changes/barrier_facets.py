"""What the row of a barrier keeps of its facet: the members that no column of the row holds."""

import msgspec


class _Members(msgspec.Struct):
    incarnation: msgspec.Raw = msgspec.Raw()
    sources: msgspec.Raw = msgspec.Raw()
    lookups: msgspec.Raw = msgspec.Raw()


_DECODER = msgspec.json.Decoder(_Members)


def beside_columns(facet: bytes) -> bytes:
    """These members of a `strandline_barrier` facet as they came, as a JSON object.

    What is none is given back as it is.

    >>> beside_columns(b'{"engine": "spark", "barrierId": 7, "sources": [ ]}'), beside_columns(b'{"barrierId": 7}')
    (b'{"sources":[ ]}', b'{}')
    """
    try:
        found = _DECODER.decode(facet)
    except msgspec.DecodeError:
        return facet
    members = ((name, bytes(getattr(found, name))) for name in found.__struct_fields__)
    return b"{%s}" % b",".join(
        b'"%s":%s' % (name.encode(), value) for name, value in members if value
    )
