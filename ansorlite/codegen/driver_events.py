"""How long each step of a model takes on an NVIDIA GPU, by events of its stream."""

from __future__ import annotations

from ansorlite.codegen.driver_calls import DriverFunction


class Events:
    """One before each step of the model, and one behind the last.

    Where a call of the driver fails, it goes on at the label ``pop`` of the function.
    """

    def __init__(self, f: DriverFunction, steps: int) -> None:
        self._f = f
        self._steps = steps
        self._events, self._next = f.place(f"[{steps + 1} x ptr]"), f.place("i64")
        self._milliseconds = f.place("float")
        f.do(f"store [{steps + 1} x ptr] zeroinitializer, ptr {self._events}, align 16")
        f.do(f"store i64 0, ptr {self._next}, align 8")

    def _at(self, number: str) -> str:
        return self._f.op(f"getelementptr ptr, ptr {self._events}, i64 {number}")

    def _event(self, number: str) -> str:
        return self._f.op(f"load ptr, ptr {self._at(number)}, align 8")

    def make(self, failed: str) -> None:
        f = self._f
        with f.loop(str(self._steps + 1)) as number:
            f.must("pop", failed, "cuEventCreate", f"ptr {self._at(number)}", "i32 0")

    def recorded(self) -> str:
        """How many have been."""
        return self._f.op(f"load i64, ptr {self._next}, align 8")

    def record(self, failed: str) -> None:
        """The next one."""
        f, number = self._f, self.recorded()
        f.must("pop", failed, "cuEventRecord", f"ptr {self._event(number)}", "ptr %stream")
        f.do(f"store i64 {f.op(f'add i64 {number}, 1')}, ptr {self._next}, align 8")

    def tell(self, failed: str) -> None:
        """Wait, and write how long each step took."""
        f = self._f
        f.must("pop", failed, "cuStreamSynchronize", "ptr %stream")
        with f.loop(str(self._steps)) as number:
            begin, end = self._event(number), self._event(f.op(f"add i64 {number}, 1"))
            f.must("pop", failed, "cuEventElapsedTime", f"ptr {self._milliseconds}", f"ptr {begin}", f"ptr {end}")
            wide = f.op(f"fpext float {f.op(f'load float, ptr {self._milliseconds}, align 4')} to double")
            whole = f.op(f"fptosi double {f.op(f'fmul double {wide}, 1.0e6')} to i64")
            f.do(f"store i64 {whole}, ptr {f.op(f'getelementptr i64, ptr %nanoseconds, i64 {number}')}, align 8")

    def unmake(self) -> None:
        f = self._f
        with f.loop(str(self._steps + 1)) as number:
            event = self._event(number)
            with f.where(f.op(f"icmp ne ptr {event}, null")):
                f.ask("cuEventDestroy", f"ptr {event}")
