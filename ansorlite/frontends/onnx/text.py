"""Names in a model file that are no text."""

from __future__ import annotations

from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from ansorlite.errors import ModelError


def check_text(message: Message, what: str) -> None:
    """Whoever writes protobufs may put any bytes where a string should be; they would be read as such, and be no string.

    Raises:
        ModelError: a string in ``message`` is not UTF-8.
    """
    strings, messages = _fields(message.DESCRIPTOR)
    for field in strings:
        value = getattr(message, field.name)
        for text in value if field.is_repeated else (value,):
            if isinstance(text, bytes):
                raise ModelError(f"{what} is damaged: {field.full_name} holds {text[:40]!r}, which is no UTF-8")
    for field in messages:
        if field.is_repeated:
            for inner in getattr(message, field.name):
                check_text(inner, what)
        elif message.HasField(field.name):
            check_text(getattr(message, field.name), what)


@cache
def _fields(kind: Descriptor) -> tuple[list[FieldDescriptor], list[FieldDescriptor]]:
    """Those that hold strings, and those that hold messages."""
    strings = [field for field in kind.fields if field.type == FieldDescriptor.TYPE_STRING]
    messages = [field for field in kind.fields if field.type == FieldDescriptor.TYPE_MESSAGE]
    return strings, messages
