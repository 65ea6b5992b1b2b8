"""Logic, shifts and bit fields (PTX ISA, "Logic and Shift Instructions", and the bit instructions of "Integer Arithmetic")."""

from __future__ import annotations

from tilefw_nvidia.isa.model import Chapter

CHAPTER = Chapter()
form = CHAPTER.form

LOGIC = "pred b16 b32 b64"


@form("and.type d, a, b", type=LOGIC, unit="alu", section="Logic and Shift: and")
def and_(m):
    """d = a & b."""
    return lambda lanes, a, b: lanes.and_(a, b)


@form("or.type d, a, b", type=LOGIC, unit="alu", section="Logic and Shift: or")
def or_(m):
    """d = a | b."""
    return lambda lanes, a, b: lanes.or_(a, b)


@form("xor.type d, a, b", type=LOGIC, unit="alu", section="Logic and Shift: xor")
def xor(m):
    """d = a ^ b."""
    return lambda lanes, a, b: lanes.xor(a, b)


@form("not.type d, a", type=LOGIC, unit="alu", section="Logic and Shift: not")
def not_(m):
    """d = ~a."""
    return lambda lanes, a: lanes.not_(a)


@form("cnot.type d, a", type="b16 b32 b64", unit="alu", section="Logic and Shift: cnot")
def cnot(m):
    """d = (a == 0) ? 1 : 0."""
    bits = m.type_of().bits
    return lambda lanes, a: lanes.zero_extend(lanes.compare(a, lanes.const(0, bits), "eq", False), bits)


@form("lop3.b32 d, a, b, c, =lut", unit="alu", section="Logic and Shift: lop3", ptx="4.3", since=50)
def lop3(m):
    """Any function of three bits, by its 8-bit table."""
    lut = m.lut & 0xFF
    return lambda lanes, a, b, c: lanes.lookup3(a, b, c, lut)


@form("shl.type d, a, b:u32", type="b16 b32 b64", unit="alu", section="Logic and Shift: shl")
def shl(m):
    """d = a << b; amounts past the width give 0."""
    return lambda lanes, a, b: lanes.shl(a, b)


@form("shr.type d, a, b:u32", type="b16 b32 b64 u16 u32 u64 s16 s32 s64", unit="alu", section="Logic and Shift: shr")
def shr(m):
    """d = a >> b, filled with the sign when signed; amounts past the width count as the width."""
    signed = m.type_of().signed
    return lambda lanes, a, b: lanes.shr(a, b, signed)


@form(
    "shf.way.mode.b32 d, a, b, c:u32", way="l r", mode="clamp wrap", unit="alu", section="Logic and Shift: shf", ptx="3.1", since=32
)
def shf(m):
    """Funnel shift of [b, a]: the high word of a left shift, the low word of a right shift."""

    def meaning(lanes, a, b, c):
        width = lanes.const(32, 32)
        near = lanes.min(c, width, False) if m.mode == "clamp" else lanes.and_(c, lanes.const(31, 32))
        far = lanes.sub(width, near)
        if m.way == "l":
            return lanes.or_(lanes.shl(b, near), lanes.shr(a, far, False))
        return lanes.or_(lanes.shl(b, far), lanes.shr(a, near, False))

    return meaning


def _byte(lanes, a):
    return lanes.and_(a, lanes.const(255, 32))


def _ones(lanes, length, bits):
    """The low `length` bits set; all of them from `bits` on, since shifting that far gives 0."""
    one = lanes.const(1, bits)
    return lanes.sub(lanes.shl(one, length), one)


@form("bfe.type d, a, b:u32, c:u32", type="u32 u64", unit="alu", section="Integer Arithmetic: bfe", ptx="2.0", since=20)
def bfe_unsigned(m):
    """c bits of a from bit b on, zero-extended."""
    bits = m.type_of().bits
    return lambda lanes, a, b, c: lanes.and_(lanes.shr(a, _byte(lanes, b), False), _ones(lanes, _byte(lanes, c), bits))


@form("bfe.type d, a, b:u32, c:u32", type="s32 s64", unit="alu", section="Integer Arithmetic: bfe", ptx="2.0", since=20)
def bfe_signed(m):
    """c bits of a from bit b on, extended with the field's highest bit, or a's where the field reaches past it; 0 bits give 0."""
    bits = m.type_of().bits

    def meaning(lanes, a, b, c):
        width = lanes.const(bits, 32)
        above = lanes.sub(width, lanes.min(_byte(lanes, c), width, False))
        return lanes.shr(lanes.shl(lanes.shr(a, _byte(lanes, b), True), above), above, True)

    return meaning


@form("bfi.type d, a, b, c:u32, e:u32", type="b32 b64", unit="alu", section="Integer Arithmetic: bfi", ptx="2.0", since=20)
def bfi(m):
    """b with its e bits from bit c on replaced by the low bits of a."""
    bits = m.type_of().bits

    def meaning(lanes, a, b, c, e):
        position = _byte(lanes, c)
        mask = lanes.shl(_ones(lanes, _byte(lanes, e), bits), position)
        return lanes.or_(lanes.and_(b, lanes.not_(mask)), lanes.and_(lanes.shl(a, position), mask))

    return meaning


@form("bfind{.shiftamt}.type d:u32, a", type="u32 u64 s32 s64",
      unit="alu", section="Integer Arithmetic: bfind", ptx="2.0", since=20)
def bfind(m):
    """Position of the highest bit that is not the sign, or the shift that brings it to the top; all ones when there is none."""
    kind = m.type_of()

    def meaning(lanes, a):
        if kind.signed:
            a = lanes.xor(a, lanes.shr(a, lanes.const(kind.bits - 1, 32), True))
        zeros = lanes.leading_zeros(a)
        if not m.shiftamt:
            return lanes.sub(lanes.const(kind.bits - 1, 32), zeros)
        none = lanes.compare(zeros, lanes.const(kind.bits, 32), "eq", False)
        return lanes.select(none, lanes.const(-1, 32), zeros)

    return meaning


@form("brev.type d, a", type="b32 b64", unit="alu", section="Integer Arithmetic: brev", ptx="2.0", since=20)
def brev(m):
    """The bits in reverse order."""
    return lambda lanes, a: lanes.reverse_bits(a)


@form("clz.type d:u32, a", type="b32 b64", unit="alu", section="Integer Arithmetic: clz", ptx="2.0", since=20)
def clz(m):
    """Leading zeros."""
    return lambda lanes, a: lanes.leading_zeros(a)


@form("popc.type d:u32, a", type="b32 b64", unit="alu", section="Integer Arithmetic: popc", ptx="2.0", since=20)
def popc(m):
    """Ones."""
    return lambda lanes, a: lanes.popcount(a)


@form("bmsk.mode.b32 d, a:u32, b:u32", mode="clamp wrap", unit="alu", section="Integer Arithmetic: bmsk", ptx="7.6", since=70)
def bmsk(m):
    """b ones from bit a on; both taken modulo 32 (wrap) or clamped to 32."""

    def meaning(lanes, a, b):
        if m.mode == "wrap":
            a, b = (lanes.and_(x, lanes.const(31, 32)) for x in (a, b))
        return lanes.shl(_ones(lanes, b, 32), a)

    return meaning


@form("szext.mode.type d, a, b:u32", mode="clamp wrap", type="u32 s32",
      unit="alu", section="Integer Arithmetic: szext", ptx="7.6", since=70)
def szext(m):
    """The low b bits of a, extended by sign or zero; b is taken modulo 32 (wrap) or clamped to 32."""
    signed = m.type_of().signed

    def meaning(lanes, a, b):
        width = lanes.const(32, 32)
        kept = lanes.min(b, width, False) if m.mode == "clamp" else lanes.and_(b, lanes.const(31, 32))
        above = lanes.sub(width, kept)
        return lanes.shr(lanes.shl(a, above), above, signed)

    return meaning


@form("prmt.b32 d, a, b, c", unit="alu", section="Data Movement: prmt", ptx="2.0", since=20)
def prmt(m):
    """Bytes of [b, a] picked by four nibbles of c."""
    return lambda lanes, a, b, c: lanes.permute_bytes(a, b, c)


# The selectors that each mode stands for, by the low two bits of c (PTX ISA, "prmt", tables of modes).
_PRMT_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


@form("prmt.b32.mode d, a, b, c", mode=" ".join(_PRMT_MODES), unit="alu", section="Data Movement: prmt", ptx="2.0", since=20)
def prmt_mode(m):
    """Bytes of [b, a] in one of four fixed arrangements of the mode, by the low two bits of c."""
    zero, one, two, three = _PRMT_MODES[m.mode]

    def meaning(lanes, a, b, c):
        def bit(n):
            return lanes.truncate(lanes.shr(c, lanes.const(n, 32), False), 1)

        def word(value):
            return lanes.const(value, 32)

        high = lanes.select(bit(0), word(three), word(two))
        low = lanes.select(bit(0), word(one), word(zero))
        return lanes.permute_bytes(a, b, lanes.select(bit(1), high, low))

    return meaning
