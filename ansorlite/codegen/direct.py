"""The way from Python's arrays to a native function, as LLVM IR: checks, results and call without any Python in between.

``PyObject *ansorlite_direct(PyObject *table, PyObject *const *arguments, Py_ssize_t count)`` is what CPython calls a builtin
function. It looks whether each argument is a numpy array just as the table says; if all are, it makes the arrays that the table
asks for, puts the addresses of all in a row, calls the native function on that row while other Python threads run, and returns
the new arrays as a tuple. If not, it has done nothing, and returns ``None``. Arrays that are written must not overlap any other.
Where there is no room for a new array, numpy's ``MemoryError`` is raised.

The table is a ``bytes`` of 64-bit words:

    function, number of slots, of arguments, of new arrays
    where in this process each of PYTHON and NUMPY is, ``None``, and numpy's dtype of bytes
    a word a slot: what the function gets there, unless an array's address goes there
    RECORD words an array, arguments first: its type, its dtype, dimensions, flags, slot, bytes, whether it is written, where its
        shape is (in words from the start of the table)
    the shapes

A new array of more than a cache line begins at one. What is read of an array are the fields of numpy's ``PyArrayObject``, whose
order is part of numpy's binary interface.
"""

from __future__ import annotations

from itertools import starmap
from string import Template
from typing import TYPE_CHECKING, Final

from ansorlite.alignment import CACHE_LINE

if TYPE_CHECKING:
    from ansorlite.target import Target

#: The function's symbol.
DIRECT: Final = "ansorlite_direct"

#: What it calls of Python.
PYTHON: Final = (
    "Py_IncRef",
    "Py_DecRef",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)

#: What it calls of numpy, and where that is in the table that numpy gives to extensions: no place there changes.
NUMPY: Final = {"PyArray_NewFromDescr": 94, "PyArray_SetBaseObject": 282}

#: Where in the table each of them is, and the two objects behind them.
_PLACES: Final = {name: 4 + number for number, name in enumerate((*PYTHON, *NUMPY, "none", "bytes_dtype"))}

#: Words before the slots.
HEADER: Final = 4 + len(_PLACES)

#: Words that describe an array.
RECORD: Final = 8

_TEXT: Final = Template("""target triple = "$triple"

define ptr @$direct(ptr %self, ptr %arguments, i64 %count) nounwind {
entry:
  %table = getelementptr i8, ptr %self, i64 $bytes
  %slots_at = getelementptr i64, ptr %table, i64 1
  %slots = load i64, ptr %slots_at
  %arrays_at = getelementptr i64, ptr %table, i64 2
  %arrays = load i64, ptr %arrays_at
  %made_at = getelementptr i64, ptr %table, i64 3
  %made = load i64, ptr %made_at
$fetched
  %room = alloca i64
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
  br i1 %first_left, label %inner_begin, label %tuple
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

; Make the results.
tuple:
  %results = call ptr %PyTuple_New(i64 %made)
  %no_results = icmp eq ptr %results, null
  br i1 %no_results, label %raise, label %make
make:
  %made_so_far = phi i64 [ 0, %tuple ], [ %made_next, %keep ]
  %unmade = icmp ult i64 %made_so_far, %made
  br i1 %unmade, label %make_one, label %run
make_one:
  %made_number = add i64 %arrays, %made_so_far
  %made_words = mul i64 %made_number, $record
  %made_record = getelementptr i64, ptr %records, i64 %made_words
  %class = load ptr, ptr %made_record
  %kind_at = getelementptr ptr, ptr %made_record, i64 1
  %kind = load ptr, ptr %kind_at
  %dims_at = getelementptr i64, ptr %made_record, i64 2
  %dims_word = load i64, ptr %dims_at
  %dims = trunc i64 %dims_word to i32
  %marks_at = getelementptr i64, ptr %made_record, i64 3
  %marks_word = load i64, ptr %marks_at
  %marks = trunc i64 %marks_word to i32
  %made_slot_at = getelementptr i64, ptr %made_record, i64 4
  %made_slot = load i64, ptr %made_slot_at
  %made_bytes_at = getelementptr i64, ptr %made_record, i64 5
  %made_bytes = load i64, ptr %made_bytes_at
  %sizes_at = getelementptr i64, ptr %made_record, i64 7
  %sizes_word = load i64, ptr %sizes_at
  %sizes = getelementptr i64, ptr %table, i64 %sizes_word
  %small = icmp ule i64 %made_bytes, $line
  br i1 %small, label %make_anywhere, label %make_block
make_anywhere:
  call void %Py_IncRef(ptr %kind)                ; a new array keeps a reference that it is given
  %own = call ptr %PyArray_NewFromDescr(ptr %class, ptr %kind, i32 %dims, ptr %sizes, ptr null, ptr null, i32 0, ptr null)
  %no_own = icmp eq ptr %own, null
  br i1 %no_own, label %drop, label %keep
make_block:
  %block_bytes = add i64 %made_bytes, $line
  store i64 %block_bytes, ptr %room
  call void %Py_IncRef(ptr %bytes_dtype)
  %block = call ptr %PyArray_NewFromDescr(ptr %class, ptr %bytes_dtype, i32 1, ptr %room, ptr null, ptr null, i32 0, ptr null)
  %no_block = icmp eq ptr %block, null
  br i1 %no_block, label %drop, label %make_view
make_view:
  %block_data_at = getelementptr i8, ptr %block, i64 $data
  %block_data = load i64, ptr %block_data_at
  %beyond = add i64 %block_data, $line_less_one
  %at_line = and i64 %beyond, -$line
  %line = inttoptr i64 %at_line to ptr
  call void %Py_IncRef(ptr %kind)
  %view = call ptr %PyArray_NewFromDescr(ptr %class, ptr %kind, i32 %dims, ptr %sizes, ptr null, ptr %line, i32 %marks, ptr null)
  %no_view = icmp eq ptr %view, null
  br i1 %no_view, label %drop_block, label %base
drop_block:
  call void %Py_DecRef(ptr %block)
  br label %drop
base:
  %status = call i32 %PyArray_SetBaseObject(ptr %view, ptr %block)
  br label %keep
keep:
  %result = phi ptr [ %own, %make_anywhere ], [ %view, %base ]
  %set = call i32 %PyTuple_SetItem(ptr %results, i64 %made_so_far, ptr %result)
  %result_data_at = getelementptr i8, ptr %result, i64 $data
  %result_data = load i64, ptr %result_data_at
  %result_place = getelementptr i64, ptr %row, i64 %made_slot
  store i64 %result_data, ptr %result_place
  %made_next = add i64 %made_so_far, 1
  br label %make
drop:
  call void %Py_DecRef(ptr %results)
  br label %raise
raise:                                           ; Python's exception is set
  ret ptr null

run:
  %function = load ptr, ptr %table
  %state = call ptr %PyEval_SaveThread()
  call void %function(ptr %row)
  call void %PyEval_RestoreThread(ptr %state)
  ret ptr %results
no:
  call void %Py_IncRef(ptr %none)
  ret ptr %none
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
""")


def _fetched(name: str, place: int) -> str:
    """A value of that name: what the table has there."""
    return f"  %{name}_at = getelementptr ptr, ptr %table, i64 {place}\n  %{name} = load ptr, ptr %{name}_at"


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
        line=CACHE_LINE,
        line_less_one=CACHE_LINE - 1,
        fetched="\n".join(starmap(_fetched, _PLACES.items())),
    )
