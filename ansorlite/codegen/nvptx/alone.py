"""What some threads of a block do, and the others do not, without a branch: so warps stay together, as ``wgmma`` wants them."""

from __future__ import annotations

from ansorlite.codegen.context import Context


def do(c: Context, thread: str, count: int, instructions: str | tuple[str, ...], *operands: str, first: int = 0) -> None:
    """Instructions of ``count`` threads from number ``first`` on.

    Args:
        thread: the number of the thread, an SSA name of type i32.
        instructions: PTX, each with its semicolon; ``$0`` is the first of ``operands``.
        operands: each an SSA name, or a literal, after its type: i32 or i64.
    """
    many = (instructions,) if isinstance(instructions, str) else instructions
    number = len(operands)
    constraints = ",".join([*("l" if each.startswith("i64") else "r" for each in operands), "r", "r", "~{memory}"])
    chosen = f"setp.lt.u32 some, ${number}, ${number + 1};"
    text = " ".join(f"@some {each}" for each in many)
    text = f"{{ .reg .pred some; .reg .b64 state; {chosen} {text} }}"
    counted = c.b.op(f"sub i32 {thread}, {first}") if first else thread
    given = ", ".join([*operands, f"i32 {counted}", f"i32 {count}"])
    c.b.do(f'call void asm sideeffect "{text}", "{constraints}"({given})')
