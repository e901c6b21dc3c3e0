"""Operator definitions written in ``te``, one theme per file: functions from tensors to a tensor.

Attributes are keyword arguments. Every function raises :class:`ansorlite.errors.ExpressionError` for shapes, dtypes or
attributes that do not fit together.
"""
