"""Faces and coordinates of cube maps (CDNA3 ISA, "VOP3A": V_CUBEID_F32, V_CUBESC_F32, V_CUBETC_F32, V_CUBEMA_F32).

a, b, c are x, y, z. The face is that of the largest magnitude; z wins over y, and y over x.
"""

from __future__ import annotations

from tilefw.api.floats import float_bits
from tilefw_amd.isa.row import Chapter
from tilefw_amd.isa.rows.precision import flush_of, flushed, rounding_of

CHAPTER = Chapter()
row = CHAPTER.row


def _cases(lanes, a, b, c):
    """(z is the major axis, y is (unless z), x < 0, y < 0, z < 0)."""
    x, y, z = (lanes.fabs(v, "f32") for v in (a, b, c))
    z_major = lanes.and_(lanes.fcompare(z, x, "ge", "f32"), lanes.fcompare(z, y, "ge", "f32"))
    zero = lanes.const(0, 32)
    return z_major, lanes.fcompare(y, x, "ge", "f32"), *(lanes.fcompare(v, zero, "lt", "f32") for v in (a, b, c))


def _cube(choose):
    """A meaning that chooses among the coordinates by face, subnormals flushed as MODE says."""

    def build(m):
        flush = flush_of(m, "f32")

        def meaning(lanes, a, b, c):
            a, b, c = (flushed(lanes, v, "f32", flush) for v in (a, b, c))
            return choose(lanes, a, b, c, *_cases(lanes, a, b, c))

        return meaning

    build.__doc__ = choose.__doc__
    return build


def _number(lanes, value):
    return lanes.const(float_bits(value, "f32"), 32)


def _face(lanes, a, b, c, z_major, y_major, x_negative, y_negative, z_negative):
    """The face's number: 0 and 1 for +x and -x, 2 and 3 for y, 4 and 5 for z."""

    def pair(negative, first):
        return lanes.select(negative, _number(lanes, first + 1), _number(lanes, first))

    return lanes.select(z_major, pair(z_negative, 4.0), lanes.select(y_major, pair(y_negative, 2.0), pair(x_negative, 0.0)))


def _s_coordinate(lanes, a, b, c, z_major, y_major, x_negative, y_negative, z_negative):
    """The coordinate s of the face, before the division by the major axis."""
    minus_a, minus_c = lanes.fneg(a, "f32"), lanes.fneg(c, "f32")
    on_z = lanes.select(z_negative, minus_a, a)
    return lanes.select(z_major, on_z, lanes.select(y_major, a, lanes.select(x_negative, c, minus_c)))


def _t_coordinate(lanes, a, b, c, z_major, y_major, x_negative, y_negative, z_negative):
    """The coordinate t of the face, before the division by the major axis."""
    minus_b = lanes.fneg(b, "f32")
    on_y = lanes.select(y_negative, lanes.fneg(c, "f32"), c)
    return lanes.select(z_major, minus_b, lanes.select(y_major, on_y, minus_b))


for _name, _opcode, _choose in (("cubeid", 0x1C4, _face), ("cubesc", 0x1C5, _s_coordinate), ("cubetc", 0x1C6, _t_coordinate)):
    row(f"v_{_name}_f32 d:f32, a:f32, b:f32, c:f32", vop3=_opcode, unit="valu", section="VOP3A")(_cube(_choose))


@row("v_cubema_f32 d:f32, a:f32, b:f32, c:f32", vop3=0x1C7, unit="valu", section="VOP3A")
def v_cubema_f32(m):
    """Twice the major axis."""
    rounding, flush = rounding_of(m, "f32"), flush_of(m, "f32")

    def meaning(lanes, a, b, c):
        z_major, y_major, *_ = _cases(lanes, a, b, c)
        major = lanes.select(z_major, c, lanes.select(y_major, b, a))
        return lanes.fmul(major, _number(lanes, 2.0), "f32", rounding, flush)

    return meaning
