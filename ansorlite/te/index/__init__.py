"""Index arithmetic: everything that is known of int64 expressions, for all rooms.

``form.py``      the affine form of an expression: a constant plus multiples of what is no sum itself
``ranges.py``    between what values an expression lies
``affine.py``    forms of axes alone, with their quotients and remainders
``strides.py``   how forms move over the loops of one program, or of a population of programs
``simplify.py``  the canonical form of expressions over loops of known extent, and what is always true
"""
