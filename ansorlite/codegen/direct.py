"""The way from Python's arrays to a native function, as LLVM IR: checks and call without any Python in between.

``PyObject *ansorlite_direct(PyObject *table, PyObject *const *arguments, Py_ssize_t count)`` is what CPython calls a builtin
function. It looks whether each argument is a numpy array just as the table says; if all are, it puts their addresses in a row,
calls the native function on that row while other Python threads run, and returns ``True``. If not, it has done nothing, and
returns ``False``. Arrays that are written must not overlap any other.

The table is a ``bytes`` of 64-bit words:

    function, number of slots, number of arrays, a word for each of PYTHON: where that is in this process
    a word a slot: what the function gets there, unless an array's address goes there
    RECORD words an array: its type, its dtype, dimensions, flags, slot, bytes, whether it is written, where its shape is
    the shapes

(The last but one in words from the start of the table.) What is read of an array are the fields of numpy's
``PyArrayObject``, whose order is part of numpy's binary interface.
"""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ansorlite.target import Target

#: The function's symbol.
DIRECT: Final = "ansorlite_direct"

#: What it calls of Python.
PYTHON: Final = ("PyBool_FromLong", "PyEval_SaveThread", "PyEval_RestoreThread")

#: Words before the slots.
HEADER: Final = 3 + len(PYTHON)

#: Words that describe an array.
RECORD: Final = 8

_TEXT: Final = Template("""target triple = "$triple"

define ptr @$direct(ptr %self, ptr %arguments, i64 %count) nounwind {
entry:
  %table = getelementptr i8, ptr %self, i64 $bytes
  %bool_at = getelementptr ptr, ptr %table, i64 3
  %bool = load ptr, ptr %bool_at
  %slots_at = getelementptr i64, ptr %table, i64 1
  %slots = load i64, ptr %slots_at
  %arrays_at = getelementptr i64, ptr %table, i64 2
  %arrays = load i64, ptr %arrays_at
  %row = alloca i64, i64 %slots, align 64
  %fixed = getelementptr i64, ptr %table, i64 $header
  %fixed_bytes = mul i64 %slots, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %row, ptr %fixed, i64 %fixed_bytes, i1 false)
  %records = getelementptr i64, ptr %fixed, i64 %slots
  %all = icmp eq i64 %count, %arrays
  br i1 %all, label %look, label %no

; Does each argument fit?
look:
  %number = phi i64 [ 0, %entry ], [ %next, %fits ]
  %more = icmp ult i64 %number, %arrays
  br i1 %more, label %check_type, label %outer
check_type:                                      ; first, as only arrays have the other fields
  %argument_at = getelementptr ptr, ptr %arguments, i64 %number
  %argument = load ptr, ptr %argument_at
  %words = mul i64 %number, $record
  %record = getelementptr i64, ptr %records, i64 %words
  %type_at = getelementptr i8, ptr %argument, i64 $type
  %type = load i64, ptr %type_at
  %type_due = load i64, ptr %record
  %is_array = icmp eq i64 %type, %type_due
  br i1 %is_array, label %check_fields, label %no
check_fields:
  %dtype_at = getelementptr i8, ptr %argument, i64 $dtype
  %dtype = load i64, ptr %dtype_at
  %dtype_due_at = getelementptr i64, ptr %record, i64 1
  %dtype_due = load i64, ptr %dtype_due_at
  %same_dtype = icmp eq i64 %dtype, %dtype_due
  %rank_at = getelementptr i8, ptr %argument, i64 $rank
  %rank_int = load i32, ptr %rank_at
  %rank = sext i32 %rank_int to i64
  %rank_due_at = getelementptr i64, ptr %record, i64 2
  %rank_due = load i64, ptr %rank_due_at
  %same_rank = icmp eq i64 %rank, %rank_due
  %flags_at = getelementptr i8, ptr %argument, i64 $flags
  %flags_int = load i32, ptr %flags_at
  %flags = sext i32 %flags_int to i64
  %flags_due_at = getelementptr i64, ptr %record, i64 3
  %flags_due = load i64, ptr %flags_due_at
  %flags_there = and i64 %flags, %flags_due
  %flagged = icmp eq i64 %flags_there, %flags_due
  %both = and i1 %same_dtype, %same_rank
  %three = and i1 %both, %flagged
  br i1 %three, label %check_shape, label %no
check_shape:
  %shape_at = getelementptr i8, ptr %argument, i64 $shape
  %shape = load ptr, ptr %shape_at
  %shape_due_at = getelementptr i64, ptr %record, i64 7
  %shape_due_word = load i64, ptr %shape_due_at
  %shape_due = getelementptr i64, ptr %table, i64 %shape_due_word
  br label %extents
extents:
  %dimension = phi i64 [ 0, %check_shape ], [ %following, %extent ]
  %left = icmp ult i64 %dimension, %rank
  br i1 %left, label %extent, label %fits
extent:
  %extent_at = getelementptr i64, ptr %shape, i64 %dimension
  %extent_is = load i64, ptr %extent_at
  %extent_due_at = getelementptr i64, ptr %shape_due, i64 %dimension
  %extent_due = load i64, ptr %extent_due_at
  %following = add i64 %dimension, 1
  %same_extent = icmp eq i64 %extent_is, %extent_due
  br i1 %same_extent, label %extents, label %no
fits:
  %data_at = getelementptr i8, ptr %argument, i64 $data
  %data = load i64, ptr %data_at
  %slot_at = getelementptr i64, ptr %record, i64 4
  %slot = load i64, ptr %slot_at
  %place = getelementptr i64, ptr %row, i64 %slot
  store i64 %data, ptr %place
  %next = add i64 %number, 1
  br label %look

; Does an array that is written overlap another?
outer:
  %first = phi i64 [ 0, %look ], [ %first_next, %outer_next ]
  %first_left = icmp ult i64 %first, %arrays
  br i1 %first_left, label %inner_begin, label %run
inner_begin:
  %first_words = mul i64 %first, $record
  %first_record = getelementptr i64, ptr %records, i64 %first_words
  %written_at = getelementptr i64, ptr %first_record, i64 6
  %written = load i64, ptr %written_at
  %first_slot_at = getelementptr i64, ptr %first_record, i64 4
  %first_slot = load i64, ptr %first_slot_at
  %begin_at = getelementptr i64, ptr %row, i64 %first_slot
  %begin = load i64, ptr %begin_at
  %bytes_at = getelementptr i64, ptr %first_record, i64 5
  %bytes = load i64, ptr %bytes_at
  %end = add i64 %begin, %bytes
  %is_written = icmp ne i64 %written, 0
  br i1 %is_written, label %inner, label %outer_next
inner:
  %second = phi i64 [ 0, %inner_begin ], [ %second_next, %inner_next ]
  %second_left = icmp ult i64 %second, %arrays
  br i1 %second_left, label %pair, label %outer_next
pair:
  %second_words = mul i64 %second, $record
  %second_record = getelementptr i64, ptr %records, i64 %second_words
  %second_slot_at = getelementptr i64, ptr %second_record, i64 4
  %second_slot = load i64, ptr %second_slot_at
  %second_begin_at = getelementptr i64, ptr %row, i64 %second_slot
  %second_begin = load i64, ptr %second_begin_at
  %second_bytes_at = getelementptr i64, ptr %second_record, i64 5
  %second_bytes = load i64, ptr %second_bytes_at
  %second_end = add i64 %second_begin, %second_bytes
  %before = icmp ult i64 %second_begin, %end
  %behind = icmp ult i64 %begin, %second_end
  %meet = and i1 %before, %behind
  %other = icmp ne i64 %first, %second
  %overlap = and i1 %meet, %other
  br i1 %overlap, label %no, label %inner_next
inner_next:
  %second_next = add i64 %second, 1
  br label %inner
outer_next:
  %first_next = add i64 %first, 1
  br label %outer

run:
  %function = load ptr, ptr %table
  %save_at = getelementptr ptr, ptr %table, i64 4
  %save = load ptr, ptr %save_at
  %restore_at = getelementptr ptr, ptr %table, i64 5
  %restore = load ptr, ptr %restore_at
  %state = call ptr %save()
  call void %function(ptr %row)
  call void %restore(ptr %state)
  %true = call ptr %bool(i64 1)
  ret ptr %true
no:
  %false = call ptr %bool(i64 0)
  ret ptr %false
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
""")


def text(target: Target, head: int) -> str:
    """The function's LLVM IR for a 64-bit ``target``.

    Args:
        head: bytes of what every Python object begins with; its type is the last word of these.
    """
    return _TEXT.substitute(
        triple=target.triple,
        direct=DIRECT,
        header=HEADER,
        record=RECORD,
        bytes=head + 16,  # behind their length and hash
        type=head - 8,
        data=head,
        rank=head + 8,
        shape=head + 16,
        dtype=head + 40,
        flags=head + 48,
    )
