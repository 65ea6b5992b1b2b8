"""The checks of an access as LLVM IR: what checked code calls before each, and the words of memory that it shares with the device.

A place of an argument has three words of shadow: who wrote it last, and two of those that read it. Such a word says which program
(bits 0 to 31, from 1), when in the order of its own releases (32 to 62), and whether by an atomic access (63). A program knows of
each other up to which of its releases it comes after (`KNOWN`); what it does not come after races, unless both are atomic.
"""

from __future__ import annotations

from enum import IntEnum

STATE = "tilefw.checks"
"""The variable of the code that points to the state."""
FOUND = -1
"""What a program answers where a check has found something; the state says what."""
REGION_WORDS = 5


class StateWord(IntEnum):
    """Words of 64 bits that the device fills in before a launch, and from CLAIMED to OTHER the first finding."""

    REGIONS = 0
    """How many arguments there are in memory."""
    TABLE = 1
    """Of each `REGION_WORDS`: where it begins and ends, whether it is read-only, its bytes' initialisation, its places' shadow."""
    ALIGNMENT = 2
    """Whether it is checked."""
    SHIFT = 3
    """A place has 1 << SHIFT bytes."""
    KNOWN = 4
    EPOCH = 5
    """Of the program that runs: how many releases it has made, and 1."""
    BEGIN = 6
    """Function of a program's number: it begins. Null where races are not checked."""
    ORDER = 7
    """Function of an address and of what an atomic access does there: 1 acquires, 2 releases."""
    CLAIMED = 8
    REASON = 9
    SITE = 10
    ADDRESS = 11
    PROGRAM = 12
    OTHER = 13


class Reason(IntEnum):
    """What is wrong with an access."""

    BOUNDS = 1
    READ_ONLY = 2
    ALIGNMENT = 3
    INITIALISATION = 4
    RACE = 5


class Touch(IntEnum):
    """How an access touches memory: 1 writes, 2 reads, 4 does not race with its like."""

    READ = 2
    WRITE = 1
    VOLATILE_READ = 6
    VOLATILE_WRITE = 5
    ATOMIC = 7


def _word(name: str, word: StateWord, kind: str = "i64") -> str:
    return f"  %at.{name} = getelementptr i64, ptr %state, i64 {word.value}\n  %{name} = load {kind}, ptr %at.{name}"


_TOLD = (("reason", StateWord.REASON), ("site", StateWord.SITE), ("address", StateWord.ADDRESS), ("program", StateWord.PROGRAM),
         ("other", StateWord.OTHER))

_FAIL = f"""
define internal void @"tilefw.fail"(i64 %reason, i64 %site, i64 %address, i64 %program, i64 %other) noinline #0 {{
  %state = load ptr, ptr @"{STATE}"
  %claimed = getelementptr i64, ptr %state, i64 {StateWord.CLAIMED.value}
  %pair = cmpxchg ptr %claimed, i64 0, i64 1 seq_cst seq_cst
  %first = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %first, label %tell, label %end
tell:
{chr(10).join(f'''  %at.{n} = getelementptr i64, ptr %state, i64 {w.value}
  store i64 %{n}, ptr %at.{n}''' for n, w in _TOLD)}
  br label %end
end:
  ret void
}}
"""

# Whether what a word of shadow tells of races with an access of the program `me`.
_CLASH = f"""
define internal i1 @"tilefw.clash"(ptr %state, i64 %word, i64 %me) #0 {{
  %number = and i64 %word, 4294967295
  %mine = and i64 %me, 4294967295
  %same = icmp eq i64 %number, %mine
  %none = icmp eq i64 %number, 0
  %out = or i1 %same, %none
  br i1 %out, label %no, label %another
another:
  %both = and i64 %word, %me
  %atomics = icmp slt i64 %both, 0
  br i1 %atomics, label %no, label %order
order:
{_word("known", StateWord.KNOWN, "ptr")}
  %index = sub i64 %number, 1
  %place = getelementptr i32, ptr %known, i64 %index
  %until = load i32, ptr %place
  %shifted = lshr i64 %word, 32
  %when = and i64 %shifted, 2147483647
  %wide = zext i32 %until to i64
  %unordered = icmp ult i64 %wide, %when
  ret i1 %unordered
no:
  ret i1 false
}}
"""

# Takes note of an access in a place's shadow; gives the word of what it races with, or 0.
_NOTED = """
define internal i64 @"tilefw.noted"(ptr %state, ptr %shadow, i64 %me, i1 %reads) #0 {
  %first = getelementptr i64, ptr %shadow, i64 1
  %second = getelementptr i64, ptr %shadow, i64 2
  %writer = load i64, ptr %shadow
  %reader = load i64, ptr %first
  %later = load i64, ptr %second
  %lost = call i1 @"tilefw.clash"(ptr %state, i64 %writer, i64 %me)
  br i1 %lost, label %bad, label %fine
fine:
  %past = call i1 @"tilefw.clash"(ptr %state, i64 %reader, i64 %me)
  br i1 %reads, label %read, label %write
read:
  %where = select i1 %past, ptr %second, ptr %first
  store i64 %me, ptr %where
  ret i64 0
write:
  br i1 %past, label %bad, label %more
more:
  %last = call i1 @"tilefw.clash"(ptr %state, i64 %later, i64 %me)
  br i1 %last, label %bad, label %keep
keep:
  store i64 %me, ptr %shadow
  ret i64 0
bad:
  %with = phi i64 [ %writer, %0 ], [ %reader, %write ], [ %later, %more ]
  ret i64 %with
}
"""

_ACCESS = f"""
define internal i1 @"tilefw.access"(ptr %addresses, ptr %mask, ptr %values, i64 %lanes, i64 %size, i64 %kind, i64 %site,
  i64 %program) noinline #0 {{
begin:
  %state = load ptr, ptr @"{STATE}"
{_word("regions", StateWord.REGIONS)}
{_word("table", StateWord.TABLE, "ptr")}
{_word("aligned", StateWord.ALIGNMENT)}
{_word("shift", StateWord.SHIFT)}
{_word("epoch", StateWord.EPOCH)}
  %number = add i64 %program, 1
  %moment = shl i64 %epoch, 32
  %who = or i64 %number, %moment
  %like = and i64 %kind, 4
  %atomic = icmp ne i64 %like, 0
  %sign = select i1 %atomic, i64 {-1 << 63}, i64 0
  %me = or i64 %who, %sign
  %writing = and i64 %kind, 1
  %reads = icmp eq i64 %writing, 0
  %reading = and i64 %kind, 2
  %stores = icmp eq i64 %reading, 0
  %inside = sub i64 %size, 1
  br label %lane
lane:
  %k = phi i64 [ 0, %begin ], [ %k1, %next ]
  %over = icmp eq i64 %k, %lanes
  br i1 %over, label %good, label %look
good:
  ret i1 false
look:
  %mask.at = getelementptr i8, ptr %mask, i64 %k
  %on = load i8, ptr %mask.at
  %off = icmp eq i8 %on, 0
  br i1 %off, label %next, label %find
next:
  %k1 = add i64 %k, 1
  br label %lane
find:
  %address.at = getelementptr i64, ptr %addresses, i64 %k
  %address = load i64, ptr %address.at
  br label %region
region:
  %r = phi i64 [ 0, %find ], [ %r1, %other ]
  %none = icmp eq i64 %r, %regions
  br i1 %none, label %outside, label %try
try:
  %first = mul i64 %r, {REGION_WORDS}
  %entry = getelementptr i64, ptr %table, i64 %first
  %start = load i64, ptr %entry
  %end.at = getelementptr i64, ptr %entry, i64 1
  %end = load i64, ptr %end.at
  %above = icmp uge i64 %address, %start
  %below = icmp ule i64 %address, %end
  %room = sub i64 %end, %address
  %fits = icmp uge i64 %room, %size
  %both = and i1 %above, %below
  %holds = and i1 %both, %fits
  br i1 %holds, label %found, label %other
other:
  %r1 = add i64 %r, 1
  br label %region
found:
  %readonly.at = getelementptr i64, ptr %entry, i64 2
  %readonly = load i64, ptr %readonly.at
  %changes = xor i1 %reads, true
  %fixed = icmp ne i64 %readonly, 0
  %forbidden = and i1 %changes, %fixed
  br i1 %forbidden, label %outside, label %align
align:
  %low = and i64 %address, %inside
  %odd = icmp ne i64 %low, 0
  %wanted = icmp ne i64 %aligned, 0
  %skewed = and i1 %odd, %wanted
  br i1 %skewed, label %outside, label %known
known:
  %offset = sub i64 %address, %start
  %bytes.at = getelementptr i64, ptr %entry, i64 3
  %bytes = load ptr, ptr %bytes.at
  %untold = icmp eq ptr %bytes, null
  br i1 %untold, label %shadowed, label %byte
byte:
  %b = phi i64 [ 0, %known ], [ %b1, %following ]
  %all = icmp eq i64 %b, %size
  br i1 %all, label %shadowed, label %test
test:
  %which = add i64 %offset, %b
  %byte.at = getelementptr i8, ptr %bytes, i64 %which
  %defined = load i8, ptr %byte.at
  %raw = icmp eq i8 %defined, 0
  br i1 %stores, label %define, label %need
need:
  br i1 %raw, label %outside, label %following
define:
  store i8 1, ptr %byte.at
  br label %following
following:
  %b1 = add i64 %b, 1
  br label %byte
shadowed:
  %shadow.at = getelementptr i64, ptr %entry, i64 4
  %shadow = load ptr, ptr %shadow.at
  %unordered = icmp eq ptr %shadow, null
  br i1 %unordered, label %next, label %places
places:
  %place.first = lshr i64 %offset, %shift
  %offset.last = add i64 %offset, %inside
  %place.last = lshr i64 %offset.last, %shift
  br label %place
place:
  %p = phi i64 [ %place.first, %places ], [ %p1, %step ]
  %words = mul i64 %p, 3
  %here = getelementptr i64, ptr %shadow, i64 %words
  %with = call i64 @"tilefw.noted"(ptr %state, ptr %here, i64 %me, i1 %reads)
  %calm = icmp eq i64 %with, 0
  br i1 %calm, label %step, label %race
step:
  %p1 = add i64 %p, 1
  %done = icmp ugt i64 %p1, %place.last
  br i1 %done, label %next, label %place
race:
  br i1 %stores, label %compare, label %outside
compare:
  %c = phi i64 [ 0, %race ], [ %c1, %equal ]
  %same = icmp eq i64 %c, %size
  br i1 %same, label %next, label %one
one:
  %lane.at = mul i64 %k, %size
  %byte.n = add i64 %lane.at, %c
  %new.at = getelementptr i8, ptr %values, i64 %byte.n
  %new = load i8, ptr %new.at
  %memory = inttoptr i64 %address to ptr
  %old.at = getelementptr i8, ptr %memory, i64 %c
  %old = load i8, ptr %old.at
  %equals = icmp eq i8 %new, %old
  br i1 %equals, label %equal, label %outside
equal:
  %c1 = add i64 %c, 1
  br label %compare
outside:
  %reason = phi i64 [ {Reason.BOUNDS.value}, %region ], [ {Reason.READ_ONLY.value}, %found ], [ {Reason.ALIGNMENT.value}, %align ],
    [ {Reason.INITIALISATION.value}, %need ], [ {Reason.RACE.value}, %race ], [ {Reason.RACE.value}, %one ]
  %rival = phi i64 [ 0, %region ], [ 0, %found ], [ 0, %align ], [ 0, %need ], [ %with, %race ], [ %with, %one ]
  call void @"tilefw.fail"(i64 %reason, i64 %site, i64 %address, i64 %program, i64 %rival)
  ret i1 true
}}
"""

_ORDERING = f"""
define internal void @"tilefw.begins"(i64 %program) #0 {{
  %state = load ptr, ptr @"{STATE}"
{_word("begin", StateWord.BEGIN, "ptr")}
  %silent = icmp eq ptr %begin, null
  br i1 %silent, label %end, label %tell
tell:
  call void %begin(i64 %program)
  br label %end
end:
  ret void
}}

define internal void @"tilefw.orders"(i64 %address, i64 %what) #0 {{
  %state = load ptr, ptr @"{STATE}"
{_word("order", StateWord.ORDER, "ptr")}
  %silent = icmp eq ptr %order, null
  br i1 %silent, label %end, label %tell
tell:
  call void %order(i64 %address, i64 %what)
  br label %end
end:
  ret void
}}
"""

TEXT = f'@"{STATE}" = global ptr null\n' + _FAIL + _CLASH + _NOTED + _ACCESS + _ORDERING
"""What checked code has beside its programs."""
