"""The thread team as LLVM IR: what kernels call to run a parallel loop.

``void ansorlite_team_run(body, context, iterations, chunks, threads)`` cuts ``range(iterations)`` into ``chunks`` parts
that differ by one at most, and calls ``void body(context, begin, end, thread)`` once for each. The caller is thread 0 and
works through the chunks itself; helper ``w`` is thread ``w``, and helps when it is awake. So the caller never waits for a
thread that has not begun: only, when no chunk is left, for those that others are working on. If another caller has the
team, or ``threads`` is 1, the caller does everything, as thread 0.

How it works. One word, the ticket, holds (threads of the job, first and end of the chunks that are left). Threads of even number
take the first by compare-and-swap, those of odd number the last, so two threads each have one half in a row, whoever is faster
more of it: neighbours in the iteration space rarely write to the same line at the same time, and the next loop finds in a core's
caches what that core has left there. Who has claimed owns a chunk of the job that is running now: so a helper that was stopped
for any length of time between looking and claiming claims something true, or nothing. The other facts of the job are written
before the ticket, and stay until the last chunk is done. A helper without work looks at the ticket for a while, then says
that it sleeps, looks once more, and sleeps on a semaphore of its own. The caller publishes the ticket, and only then looks
who sleeps; one of the two sees the other (both are sequentially consistent), so no wake-up is lost.

Helpers keep off the caller's core: whenever the caller is found on another one than last time, they are allowed every core
that its thread had been allowed when they were started, but that. Left to itself, Linux wakes a helper on the core that its
caller runs on and leaves both there for tens of milliseconds, beside a core that idles (docs/decisions/thread-team.md).

``void ansorlite_team_forget()`` is for the child of a fork, which has none of its parent's helpers: new ones are started
when the next parallel loop asks for them.
"""

from __future__ import annotations

from string import Template
from typing import Final

from ansorlite.codegen.architecture import architecture_of
from ansorlite.codegen.clock import NOW
from ansorlite.errors import TargetError
from ansorlite.target import Target

#: The functions' symbols.
RUN: Final = "ansorlite_team_run"
FORGET: Final = "ansorlite_team_forget"

#: The largest team, its caller included: that many slots exist.
MAX_THREADS: Final = 1024

#: Bytes of a helper's stack, as a main thread commonly has; only what is touched becomes memory.
_STACK: Final = 8 << 20

#: How often the caller looks whether the others are done, before it offers its core to them at each look.
_LOOKS: Final = 1000

# The ticket: bits 0-23 the first chunk left, bits 24-47 one past the last, bits 48-63 threads.
_TEXT: Final = Template("""target triple = "$triple"

%slot = type { i64, [56 x i8], [64 x i8] }  ; whether the helper sleeps, its semaphore
%cores = type [16 x i64]                    ; a bit for each core, as glibc's cpu_set_t

@ticket = internal global i64 0, align 128
@done = internal global i64 0, align 128
@body = internal global ptr null, align 128
@context = internal global ptr null
@iterations = internal global i64 0
@chunks = internal global i64 0
@busy = internal global i64 0, align 128     ; whether a caller has the team
@helpers = internal global i64 0             ; that run
@asked = internal global i64 0               ; that were asked for: more than run, where the system gives no more threads
@home = internal global i32 -1               ; the core that helpers keep off, -1 where they keep off none
@allowed = internal global %cores zeroinitializer, align 8  ; the cores that helpers may use; none if they can't be told
@handles = internal global [$max_threads x i64] zeroinitializer  ; of the helpers' threads
@slots = internal global [$max_threads x %slot] zeroinitializer, align 128

define internal void @pause() alwaysinline nounwind {
  call void @$pause($pause_argument)
  ret void
}

$now
; Whether a ticket has a chunk left that a thread may take.
define internal i1 @open(i64 %word, i64 %thread) alwaysinline nounwind {
  %front = and i64 %word, 16777215
  %shifted = lshr i64 %word, 24
  %back = and i64 %shifted, 16777215
  %threads = lshr i64 %word, 48
  %left = icmp ult i64 %front, %back
  %member = icmp ult i64 %thread, %threads
  %both = and i1 %left, %member
  ret i1 %both
}

; The chunk that is claimed by taking one from the ticket. More than two threads share the two ends, so chunks are taken in turn
; from so many lanes of them, one for every two threads, as are next to each other: place p is row p / lanes of lane p % lanes.
define internal i64 @chunk_of(i64 %word, i64 %chunks, i1 %odd) alwaysinline nounwind {
  %front = and i64 %word, 16777215
  %shifted = lshr i64 %word, 24
  %back = and i64 %shifted, 16777215
  %last = sub i64 %back, 1
  %place = select i1 %odd, i64 %last, i64 %front
  %threads = lshr i64 %word, 48
  %even = add i64 %threads, 1
  %lanes = lshr i64 %even, 1
  %lane = urem i64 %place, %lanes
  %row = udiv i64 %place, %lanes
  %rows = udiv i64 %chunks, %lanes
  %longer = urem i64 %chunks, %lanes          ; so many lanes, the first, have a row more
  %before = call i64 @llvm.umin.i64(i64 %lane, i64 %longer)
  %whole = mul i64 %lane, %rows
  %begin = add i64 %whole, %before
  %chunk = add i64 %begin, %row
  ret i64 %chunk
}

; Run chunk number %chunk: from its share of the iterations to the next one's.
define internal void @chunk(ptr %body, ptr %context, i64 %iterations, i64 %chunks, i64 %chunk, i64 %thread) alwaysinline {
  %after = add i64 %chunk, 1
  %low = mul i64 %chunk, %iterations
  %high = mul i64 %after, %iterations
  %begin = udiv i64 %low, %chunks
  %end = udiv i64 %high, %chunks
  call void %body(ptr %context, i64 %begin, i64 %end, i64 %thread)
  ret void
}

; Claim and run chunks until none is left; how many.
define internal i64 @work(i64 %thread) nounwind {
entry:
  %odd = trunc i64 %thread to i1
  %step = select i1 %odd, i64 -16777216, i64 1  ; of the ticket: one from the back, or from the front
  br label %look
look:
  %mine = phi i64 [ 0, %entry ], [ %more, %run ]
  %first = load atomic i64, ptr @ticket monotonic, align 8
  br label %try
try:
  %word = phi i64 [ %first, %look ], [ %seen, %claim ]
  %open = call i1 @open(i64 %word, i64 %thread)
  br i1 %open, label %claim, label %end
claim:
  %following = add i64 %word, %step
  %pair = cmpxchg ptr @ticket, i64 %word, i64 %following acquire monotonic, align 8
  %seen = extractvalue { i64, i1 } %pair, 0
  %claimed = extractvalue { i64, i1 } %pair, 1
  br i1 %claimed, label %run, label %try
run:
  %body = load ptr, ptr @body
  %context = load ptr, ptr @context
  %iterations = load i64, ptr @iterations
  %chunks = load i64, ptr @chunks
  %chunk = call i64 @chunk_of(i64 %word, i64 %chunks, i1 %odd)
  call void @chunk(ptr %body, ptr %context, i64 %iterations, i64 %chunks, i64 %chunk, i64 %thread)
  %more = add i64 %mine, 1
  br label %look
end:
  ret i64 %mine
}

define internal ptr @helper(ptr %number) nounwind {
entry:
  %thread = ptrtoint ptr %number to i64
  %asleep = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %thread, i32 0
  %semaphore = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %thread, i32 2
  br label %help
help:
  %mine = call i64 @work(i64 %thread)
  %some = icmp ne i64 %mine, 0
  br i1 %some, label %tell, label %watch
tell:                                            ; not before no chunk is left: until then the caller waits anyway
  atomicrmw add ptr @done, i64 %mine release, align 8
  br label %watch
watch:
  %start = call i64 @now()
  %limit = add i64 %start, $spin
  br label %burst
burst:
  %time = call i64 @now()
  %late = icmp uge i64 %time, %limit
  br i1 %late, label %doze, label %glance
glance:
  %count = phi i64 [ 0, %burst ], [ %next, %relax ]
  %word = load atomic i64, ptr @ticket monotonic, align 8
  %open = call i1 @open(i64 %word, i64 %thread)
  br i1 %open, label %help, label %relax
relax:
  call void @pause()
  %next = add i64 %count, 1
  %enough = icmp eq i64 %next, 32
  br i1 %enough, label %burst, label %glance
doze:
  %was = atomicrmw xchg ptr %asleep, i64 1 seq_cst, align 8
  %last = load atomic i64, ptr @ticket seq_cst, align 8
  %found = call i1 @open(i64 %last, i64 %thread)
  br i1 %found, label %rise, label %sleep
rise:                                            ; unless the caller has seen it sleep: then the semaphore is being raised
  %pair = cmpxchg ptr %asleep, i64 1, i64 0 seq_cst seq_cst, align 8
  %alone = extractvalue { i64, i1 } %pair, 1
  br i1 %alone, label %help, label %sleep
sleep:
  %status = call i32 @sem_wait(ptr %semaphore)
  %interrupted = icmp ne i32 %status, 0
  br i1 %interrupted, label %sleep, label %help
}

; Start helpers until there are %wanted, or until the system gives no more threads. The caller has the team.
define internal void @grow(i64 %wanted) noinline nounwind {
entry:
  %attributes = alloca [256 x i8], align 16
  store i64 %wanted, ptr @asked
  store i32 -1, ptr @home
  %caller = call i64 @pthread_self()
  %unknown = call i32 @pthread_getaffinity_np(i64 %caller, i64 128, ptr @allowed)  ; fails where a set needs more bits
  call i32 @pthread_attr_init(ptr %attributes)
  call i32 @pthread_attr_setstacksize(ptr %attributes, i64 $stack)
  br label %look
look:
  %running = load i64, ptr @helpers
  %enough = icmp uge i64 %running, %wanted
  br i1 %enough, label %end, label %start
start:
  %thread = add i64 %running, 1
  %asleep = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %thread, i32 0
  %semaphore = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %thread, i32 2
  store i64 0, ptr %asleep
  call i32 @sem_init(ptr %semaphore, i32 0, i32 0)
  %handle = getelementptr [$max_threads x i64], ptr @handles, i64 0, i64 %thread
  %number = inttoptr i64 %thread to ptr
  %status = call i32 @pthread_create(ptr %handle, ptr %attributes, ptr @helper, ptr %number)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %end, label %started
started:
  %pthread = load i64, ptr %handle
  call i32 @pthread_detach(i64 %pthread)
  store i64 %thread, ptr @helpers
  br label %look
end:
  call i32 @pthread_attr_destroy(ptr %attributes)
  ret void
}

; Let all helpers use the allowed cores without %core; if that is the only one, leave them where they are.
define internal void @keep_off(i32 %core) noinline nounwind {
entry:
  %cores = alloca %cores, align 8
  store i32 %core, ptr @home
  %known = icmp ult i32 %core, 1024
  br i1 %known, label %clear, label %end
clear:
  %all = load %cores, ptr @allowed
  store %cores %all, ptr %cores
  %index = lshr i32 %core, 6
  %place = getelementptr %cores, ptr %cores, i64 0, i32 %index
  %low = and i32 %core, 63
  %shift = zext i32 %low to i64
  %bit = shl i64 1, %shift
  %others = xor i64 %bit, -1
  %old = load i64, ptr %place
  %rest = and i64 %old, %others
  store i64 %rest, ptr %place
  %vector = load <16 x i64>, ptr %cores, align 8
  %any = call i64 @llvm.vector.reduce.or.v16i64(<16 x i64> %vector)
  %some = icmp ne i64 %any, 0
  br i1 %some, label %first, label %end
first:
  %helpers = load i64, ptr @helpers
  br label %look
look:
  %thread = phi i64 [ 1, %first ], [ %following, %move ]
  %more = icmp ule i64 %thread, %helpers
  br i1 %more, label %move, label %end
move:
  %slot = getelementptr [$max_threads x i64], ptr @handles, i64 0, i64 %thread
  %handle = load i64, ptr %slot
  call i32 @pthread_setaffinity_np(i64 %handle, i64 128, ptr %cores)
  %following = add i64 %thread, 1
  br label %look
end:
  ret void
}

; Wake the helpers 1 .. %last that sleep.
define internal void @wake(i64 %last) nounwind {
entry:
  br label %look
look:
  %thread = phi i64 [ 1, %entry ], [ %following, %next ]
  %more = icmp ule i64 %thread, %last
  br i1 %more, label %ask, label %end
ask:
  %asleep = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %thread, i32 0
  %state = load atomic i64, ptr %asleep seq_cst, align 8
  %sleeps = icmp ne i64 %state, 0
  br i1 %sleeps, label %take, label %next
take:
  %pair = cmpxchg ptr %asleep, i64 1, i64 0 seq_cst seq_cst, align 8
  %taken = extractvalue { i64, i1 } %pair, 1
  br i1 %taken, label %post, label %next
post:
  %semaphore = getelementptr [$max_threads x %slot], ptr @slots, i64 0, i64 %thread, i32 2
  call i32 @sem_post(ptr %semaphore)
  br label %next
next:
  %following = add i64 %thread, 1
  br label %look
end:
  ret void
}

define void @$run(ptr %body, ptr %context, i64 %iterations, i64 %chunks, i64 %threads_asked) nounwind {
entry:
  %threads = call i64 @llvm.umin.i64(i64 %threads_asked, i64 $max_threads)
  %members = call i64 @llvm.umin.i64(i64 %threads, i64 %chunks)
  %together = icmp ugt i64 %members, 1
  br i1 %together, label %enter, label %alone
enter:
  %was = atomicrmw xchg ptr @busy, i64 1 acquire, align 8
  %free = icmp eq i64 %was, 0
  br i1 %free, label %team, label %alone

alone:
  %chunk = phi i64 [ 0, %entry ], [ 0, %enter ], [ %following, %step ]
  %more = icmp ult i64 %chunk, %chunks
  br i1 %more, label %step, label %end
step:
  call void @chunk(ptr %body, ptr %context, i64 %iterations, i64 %chunks, i64 %chunk, i64 0)
  %following = add i64 %chunk, 1
  br label %alone

team:
  %others = sub i64 %threads, 1
  %asked = load i64, ptr @asked
  %few = icmp ult i64 %asked, %others
  br i1 %few, label %grow, label %place
grow:
  call void @grow(i64 %others)
  br label %place
place:
  %core = call i32 @sched_getcpu()
  %home = load i32, ptr @home
  %same = icmp eq i32 %core, %home
  br i1 %same, label %publish, label %move
move:
  call void @keep_off(i32 %core)
  br label %publish
publish:
  store ptr %body, ptr @body
  store ptr %context, ptr @context
  store i64 %iterations, ptr @iterations
  store i64 %chunks, ptr @chunks
  store atomic i64 0, ptr @done monotonic, align 8
  %high = shl i64 %threads, 48
  %middle = shl i64 %chunks, 24
  %word = or i64 %high, %middle
  %old = atomicrmw xchg ptr @ticket, i64 %word seq_cst, align 8
  %helpers = load i64, ptr @helpers
  %useful = sub i64 %members, 1
  %last = call i64 @llvm.umin.i64(i64 %useful, i64 %helpers)
  call void @wake(i64 %last)
  %mine = call i64 @work(i64 0)
  %theirs = sub i64 %chunks, %mine
  br label %wait
wait:
  %looks = phi i64 [ 0, %publish ], [ %looked, %relax ], [ %looks, %yield ]
  %count = load atomic i64, ptr @done acquire, align 8
  %finished = icmp eq i64 %count, %theirs
  br i1 %finished, label %leave, label %still
still:
  %patient = icmp ult i64 %looks, $looks
  br i1 %patient, label %relax, label %yield
relax:
  call void @pause()
  %looked = add i64 %looks, 1
  br label %wait
yield:
  call i32 @sched_yield()
  br label %wait
leave:
  store atomic i64 0, ptr @busy release, align 8
  br label %end
end:
  ret void
}

define void @$forget() nounwind {
  store i64 0, ptr @helpers
  store i64 0, ptr @asked
  store atomic i64 0, ptr @ticket seq_cst, align 8
  store atomic i64 0, ptr @busy seq_cst, align 8
  ret void
}

declare void @$pause($pause_type)
declare i64 @llvm.umin.i64(i64, i64)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i64 @pthread_self()
declare i32 @pthread_getaffinity_np(i64, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare i64 @llvm.vector.reduce.or.v16i64(<16 x i64>)
declare i32 @sched_getcpu()
declare i32 @sched_yield()
declare i32 @sem_init(ptr, i32, i32)
declare i32 @sem_post(ptr)
declare i32 @sem_wait(ptr)
""")


def text(target: Target, spin: int) -> str:
    """The team's LLVM IR for Linux on ``target``.

    Args:
        spin: nanoseconds for which an idle helper watches for work before it sleeps.

    Raises:
        TargetError: for another architecture than x86-64 and 64-bit Arm.
    """
    wait = architecture_of(target).pause
    if wait is None:
        raise TargetError(f"there are no teams of threads on {target.architecture}")
    pause, kind, argument = wait
    return _TEXT.substitute(
        triple=target.triple,
        now=NOW,
        pause=pause,
        pause_type=kind,
        pause_argument=argument,
        max_threads=MAX_THREADS,
        stack=_STACK,
        looks=_LOOKS,
        spin=spin,
        run=RUN,
        forget=FORGET,
    )
