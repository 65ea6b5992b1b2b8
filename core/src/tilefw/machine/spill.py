"""Spills registers of a file whose pressure is too high: cheap values are rematerialised, all others go to a spill slot.

Spill code for a register: a reload into a new register before each instruction that reads it, a store after each that writes it. A
value that a block has reloaded or recomputed stays in its register for the next reader, as long as the pressure in between allows
it. An instruction that can take the slot's own register as operand does so, and needs neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import gcd

import numpy as np
from numpy.typing import NDArray

from tilefw.api.integers import ceil_div, round_up
from tilefw.machine.allocate import most_at_once, unusable
from tilefw.machine.inst import Block, Function, Inst, Reg, Slice
from tilefw.machine.live_ranges import LivePart, LiveRanges
from tilefw.machine.opcodes import check_opcodes
from tilefw.machine.spill_choice import Choice, Chooser, SlotReload, as_wholes, made_again
from tilefw.machine.spill_model import MEMORY, SpillModel, SpillSlotClass, Transfer
from tilefw.machine.spill_pressure import UNLIMITED, Crowded, SpillPressure, most_live, pressures
from tilefw.machine.spill_slots import SharedSlots
from tilefw.machine.table import InstructionTable


@dataclass(slots=True)
class _Stay:
    """A register that holds `piece` of a spilled one, since its last access at instruction `last`."""

    piece: Slice
    held: Reg
    last: int

    def offers(self, piece: Slice) -> bool:
        """Whether it also holds another piece, with the alignment that the piece needs."""
        away = piece.first - self.piece.first
        return 0 <= away <= self.piece.count - piece.count and gcd(away, self.held.align) % _alignment(piece) == 0


@dataclass(slots=True)
class _SpillSlot:
    """Where a spilled register is: the holder register (None in memory, or where it is rematerialised) and the index in it, of a
    register, a lane or a byte."""

    choice: Choice
    holder: Reg | None = None
    index: int = 0

    def of(self, piece: Slice, table: InstructionTable) -> _SpillSlot:
        """Where a piece of the register is."""
        step = table.classes[piece.reg.cls].bits // 8 if self.holder is None else 1
        return _SpillSlot(self.choice, self.holder, self.index + step * piece.first)


@dataclass(slots=True)
class _LoadedFromSlot:
    """From which slot a register was loaded, by which instructions, and whether more than one reads it there."""

    slot: _SpillSlot
    insts: Sequence[Inst]
    shared: bool = False


class MemoryFull(Exception):
    """What has to wait in memory is more than spill code reaches there: `bytes` of a lane, at least."""

    def __init__(self, bytes: int) -> None:
        super().__init__(bytes)
        self.bytes = bytes


class Spiller:
    """Spills of one function, over as many rounds as it takes. `spilled` counts the smallest registers that
    are stored, by file."""

    def __init__(self, function: Function, table: InstructionTable, model: SpillModel, limits: Mapping[str, int]) -> None:
        self.function, self.table, self.model, self.limits = function, table, model, limits
        self.scratch_bytes = 0
        self.spilled: Counter[str] = Counter()
        self._stay: set[Reg] = set()
        self._lanes: dict[str, tuple[Reg, int]] = {}  # by class of the holder: the one that has lanes left, and how many are used
        self._files = list(_slots_last(table, model))
        self._loaded: dict[Reg, _LoadedFromSlot] = {}  # those that nothing else writes
        self._checked: set[str] = set()  # files that are known not to be beyond all slots together

    def relieve(self, ranges: LiveRanges, crowded: Mapping[str, Crowded]) -> bool:
        """Take registers out until at most as many of each file live at once as it has, fewer where it is `crowded`; whether any
        left. Raises MemoryFull.

        Where a file is crowded, tuples found no free run of its registers: each counts as a whole then.
        """
        parts = dict(ranges.parts)
        usable = {file: self._usable(file) for file in self._files}
        exact = now = pressures(ranges, parts, self.table, usable)
        if crowded:
            wholes = as_wholes({reg: its for reg, its in parts.items() if self.table.file(reg.cls) in crowded})
            now = exact | pressures(ranges, wholes, self.table, {file: usable[file] for file in crowded})
            parts |= wholes
        reloads = {reg: SlotReload(of.slot.choice.slot_class, of.insts) for reg, of in self._loaded.items() if of.shared}
        chooser = Chooser(self.function, ranges, self.table, self.model, now, reloads)
        slots: dict[Reg, _SpillSlot] = {}
        most = {file: most_live(ranges, pressure, exact[file], crowded.get(file)) for file, pressure in now.items()}
        of_file: dict[str, dict[Reg, Sequence[LivePart]]] = {file: {} for file in self._files}
        of_class = {cls: of_file[self.table.file(cls)] for cls in self.table.classes}
        for reg, its in parts.items():
            if reg not in self._stay or reg in reloads:
                of_class[reg.cls][reg] = its
        for file in self._files:
            self._refuse_by_far(ranges, file, now)
            needed = {slot.holder for slot in slots.values() if slot.choice.loads}
            its = {reg: of for reg, of in of_file[file].items() if reg not in needed} if needed else of_file[file]
            leaving = crowded[file].leaving if file in crowded else ()
            found = self._settle(chooser.choose(file, most[file], its, leaving), ranges)
            self._count_lanes(found, ranges, now)
            slots |= found
        if slots:
            self._loaded = {reg: of for reg, of in self._loaded.items() if reg not in slots and of.slot.holder not in slots}
            _Rewriting(self, slots, now, most).run(self.function, ranges.starts)
        return bool(slots)

    def _refuse_by_far(self, ranges: LiveRanges, file: str, now: Mapping[str, SpillPressure]) -> None:
        """Refuse at once, instead of after thousands of choices, where all slots together are too few at the point of highest
        pressure."""
        classes = [cls for cls in self.table.classes if self.table.file(cls) == file]
        slot_classes = {slot_class for cls in classes for slot_class in self.model.slot_classes.get(cls, ())}
        memory = self.model.memory_bytes
        if file in self._checked or memory is None or any(slot_class.units > 1 for slot_class in slot_classes):
            return
        self._checked.add(file)
        counts = {self.table.file(name): cls.count for name, cls in self.table.classes.items()}
        holders = {self.table.file(slot_class.holder) for slot_class in slot_classes if slot_class.holder != MEMORY}
        room = sum(counts[name] or UNLIMITED for name in (file, *holders)) + memory * 8 // self.table.classes[classes[0]].bits
        if int(now[file].at.max()) <= room:
            return
        again = made_again(self.function, self.table)
        pressure, _ = most_at_once(ranges.parts, lambda reg: self.table.file(reg.cls) == file and reg not in again)
        if pressure > room:
            raise MemoryFull(memory + (pressure - room) * self.table.classes[classes[0]].bits // 8)

    def _usable(self, file: str) -> frozenset[int] | None:
        count = next(cls.count for name, cls in self.table.classes.items() if self.table.file(name) == file)
        return None if count is None else frozenset(range(count)) - unusable(self.table, self.limits, file, count)

    def _count_lanes(self, slots: Mapping[Reg, _SpillSlot], ranges: LiveRanges, now: Mapping[str, SpillPressure]) -> None:
        """Count new registers whose lanes are slots: they live from the entry, as each store keeps the other lanes, to where the
        last of the values in them ends."""
        ends: dict[Reg, int] = {}
        for reg, slot in slots.items():
            slot_class = slot.choice.slot_class
            if slot_class is not None and slot_class.units > 1 and slot.holder is not None and slot.holder not in ranges.parts:
                end = max(part.segments[-1][1] for part in ranges.parts[reg])
                ends[slot.holder] = max(end, ends.get(slot.holder, 0))
        for holder, end in ends.items():
            now[self.table.file(holder.cls)].add([(0, end)], holder.width)

    def fresh(self, like: Slice) -> Reg:
        """A register for a piece of one that left; it stays."""
        reg = self.function.register(like.reg.cls, like.count, _alignment(like))
        self._stay.add(reg)
        return reg

    def loaded(self, held: Reg, slot: _SpillSlot, insts: Sequence[Inst]) -> None:
        """These instructions loaded `held` from there."""
        self._loaded[held] = _LoadedFromSlot(slot, insts)

    def share(self, held: Reg) -> None:
        """One more instruction reads a register that was loaded, if it was."""
        if held in self._loaded:
            self._loaded[held].shared = True

    def forget(self, held: Reg) -> None:
        """An instruction writes it too."""
        self._loaded.pop(held, None)

    def pointer(self, cls: str) -> Slice:
        """A register for the address of one access of memory; it stays."""
        reg = self.function.register(cls)
        self._stay.add(reg)
        return reg.whole

    def _settle(self, choices: Sequence[Choice], ranges: LiveRanges) -> dict[Reg, _SpillSlot]:
        """The slots of what leaves in one round; those of another round count points that are no longer these."""
        lives = {
            choice.reg: (min(part.segments[0][0] for part in parts), max(part.segments[-1][1] for part in parts))
            for choice in choices if (parts := ranges.parts[choice.reg])
        }
        shared: SharedSlots[_SpillSlot] = SharedSlots()
        found: dict[Reg, _SpillSlot] = {}
        for choice in sorted(choices, key=lambda choice: (lives[choice.reg], choice.reg.id)):
            slot_class, reg = choice.slot_class, choice.reg
            if choice.loads:
                found[reg] = replace(self._loaded[reg].slot, choice=choice)
            elif slot_class is None or (slot_class.holder != MEMORY and slot_class.units == 1):
                found[reg] = self._new_slot(choice)
            else:
                kind = slot_class.holder, reg.width, self.table.classes[reg.cls].bits
                found[reg] = replace(shared.take(kind, *lives[reg], partial(self._new_slot, choice)), choice=choice)
            if choice.stored(self.table):
                self.spilled[self.table.file(reg.cls)] += reg.width
        return found

    def _new_slot(self, choice: Choice) -> _SpillSlot:
        slot_class, reg = choice.slot_class, choice.reg
        if slot_class is None:
            return _SpillSlot(choice)
        if slot_class.holder == MEMORY:
            size = ceil_div(self.table.classes[reg.cls].bits, 8)  # a predicate takes a byte
            at = round_up(self.scratch_bytes, size)
            self.scratch_bytes = at + size * reg.width
            if self.model.memory_bytes is not None and self.scratch_bytes > self.model.memory_bytes:
                raise MemoryFull(self.scratch_bytes)
            return _SpillSlot(choice, None, at)
        if slot_class.units == 1:
            return _SpillSlot(choice, self.function.register(slot_class.holder, reg.width, reg.align))
        return _SpillSlot(choice, *self._find_lanes(slot_class, reg.width))

    def _find_lanes(self, slot_class: SpillSlotClass, count: int) -> tuple[Reg, int]:
        holder, used = self._lanes.get(slot_class.holder, (None, 0))
        if holder is None or used + count > slot_class.units:
            holder, used = self.function.register(slot_class.holder), 0
            self._stay.add(holder)
        self._lanes[slot_class.holder] = holder, used + count
        return holder, used


class _Rewriting:
    """One round's changes of the code; `most` registers of each file may be live at each point, where `pressures` says how many
    are."""

    def __init__(
        self, spiller: Spiller, slots: Mapping[Reg, _SpillSlot], pressures: Mapping[str, SpillPressure],
        most: Mapping[str, NDArray[np.int32]],
    ) -> None:
        self.spiller, self.slots, self.pressures, self.most = spiller, slots, pressures, most
        choices = [slot.choice for slot in slots.values()]
        self.gone = {id(choice.again) for choice in choices if choice.again is not None}
        self.gone |= {id(inst) for choice in choices for inst in choice.loads}
        self.in_place = {(access.number, choice.reg) for choice in choices for access in choice.in_place}
        self.accessing = {id(inst) for choice in choices for inst in choice.insts()}
        self.stays: dict[Reg, list[_Stay]] = {}
        self.new: list[Inst] = []
        self.promised: set[Reg] = set()

    def run(self, function: Function, starts: Sequence[int]) -> None:
        self.promised = {piece.reg for inst in function.insts() if inst.no_wrap in ("exact", "lost") for piece in inst.defs}
        for block, start in zip(function.blocks, starts, strict=False):
            self._block(block, start)

    def _block(self, block: Block, start: int) -> None:
        self.stays, self.new = {}, []
        for number, inst in enumerate(block.insts, start):
            if id(inst) not in self.accessing:
                self.new.append(inst)
            elif id(inst) not in self.gone:
                self._inst(inst, number)
        block.insts = self.new

    def _inst(self, inst: Inst, number: int) -> None:
        reads = {use: self._read(use, number) for use in dict.fromkeys(inst.reads()) if use.reg in self.slots}
        writes = [piece for piece in dict.fromkeys(inst.writes()) if piece.reg in self.slots]
        written = {piece: self._write(piece, number) for piece in writes}
        if reads or written:
            _replace(inst, reads, written)
        self.new.append(inst)
        for piece in writes:
            if (number, piece.reg) not in self.in_place:
                self._store(piece, written[piece])

    def _read(self, piece: Slice, number: int) -> Slice:
        """Where instruction `number` finds `piece`; loads it if nowhere yet."""
        slot = self.slots[piece.reg]
        if (number, piece.reg) in self.in_place:
            return _in_slot(slot, piece)
        stays = self.stays.setdefault(piece.reg, [])
        for stay in [stay for stay in stays if stay.offers(piece)]:
            if self._kept(stay, number):
                return stay.held.slice(piece.first - stay.piece.first, piece.count)
            stays.remove(stay)  # until a later instruction the pressure is no lower
        whole = piece.reg.whole if slot.choice.again is not None else piece
        held = self.spiller.fresh(whole)
        self._load(slot, whole, held)
        stays.append(_Stay(whole, held, number))
        return held.slice(piece.first - whole.first, piece.count)

    def _kept(self, stay: _Stay, number: int) -> bool:
        """Whether what stays may be in its register until this instruction; it is so then."""
        file = self.spiller.table.file(stay.held.cls)
        points = slice(2 * stay.last + 1, 2 * number)
        between = self.pressures[file].at[points]
        if len(between) and int((between - self.most[file][points]).max()) + stay.held.width > 0:
            return False
        between += stay.held.width
        if stay.last != number:
            self.spiller.share(stay.held)
        stay.last = number
        return True

    def _write(self, piece: Slice, number: int) -> Slice:
        """Where instruction `number` puts `piece`: into what stays and was just read, or a register of its own."""
        slot, stays = self.slots[piece.reg], self.stays.get(piece.reg, [])
        if (number, piece.reg) in self.in_place:
            self.stays[piece.reg] = [stay for stay in stays if not _meet(stay.piece, piece)]
            return _in_slot(slot, piece)
        kept = next((stay for stay in stays if stay.offers(piece) and stay.last == number), None)
        stays = self.stays[piece.reg] = [stay for stay in stays if stay is kept or not _meet(stay.piece, piece)]
        if kept is None:
            kept = _Stay(piece, self.spiller.fresh(piece), number)
            stays.append(kept)
        self.spiller.forget(kept.held)
        return kept.held.slice(piece.first - kept.piece.first, piece.count)

    def _load(self, slot: _SpillSlot, piece: Slice, held: Reg) -> None:
        again, slot_class = slot.choice.again, slot.choice.slot_class
        if again is not None:
            self.new.append(Inst(again.opcode, [held.whole], again.uses, place=again.place, no_wrap=again.no_wrap))
        elif slot_class is not None:
            made = self._transferred(slot_class.load, held.whole, *self._transfer(slot, slot_class, piece))
            if piece.reg in self.promised:
                self._lose(made)
            self.spiller.loaded(held, slot.of(piece, self.spiller.table), made)

    def _lose(self, loads: Sequence[Inst]) -> None:
        """What is promised of integers is lost on their way through a slot, but for that of copies."""
        for load in loads:
            if not self.spiller.table.traits(load.opcode).move:
                load.no_wrap = "lost"

    def _store(self, piece: Slice, held: Slice) -> None:
        slot = self.slots[piece.reg]
        slot_class = slot.choice.slot_class
        if slot_class is not None:
            self._transferred(slot_class.store, held, *self._transfer(slot, slot_class, piece))

    def _transferred(self, transfer: Transfer, held: Slice, holder: Slice | None, index: int) -> Sequence[Inst]:
        made = transfer(held, holder, index)
        check_opcodes(made, self.spiller.table, transfer)
        self.new += made
        return made

    def _transfer(self, slot: _SpillSlot, slot_class: SpillSlotClass, piece: Slice) -> tuple[Slice | None, int]:
        """The holder and the index that `SpillSlotClass.load` and `SpillSlotClass.store` take."""
        if slot.holder is None:
            size = self.spiller.table.classes[piece.reg.cls].bits // 8
            index = slot.index + size * piece.first
            far = slot_class.reach is not None and index + size * piece.count > slot_class.reach
            return self.spiller.pointer(slot_class.pointer) if far else None, index
        if slot_class.units == 1:
            return _in_slot(slot, piece), 0
        return slot.holder.whole, slot.index + piece.first


def _slots_last(table: InstructionTable, model: SpillModel) -> Iterator[str]:
    """The files, each before those whose registers hold its slots, as far as that goes: their pressure is then known."""
    holders: dict[str, list[str]] = {table.file(cls): [] for cls in table.classes}
    for cls, slot_classes in model.slot_classes.items():
        holders[table.file(cls)] += [table.file(each.holder) for each in slot_classes if each.holder != MEMORY]
    waiting = list(holders)
    while waiting:
        free = [file for file in waiting if not any(file in holders[other] for other in waiting if other != file)]
        file = free[0] if free else waiting[0]
        waiting.remove(file)
        yield file


def _in_slot(slot: _SpillSlot, piece: Slice) -> Slice:
    assert slot.holder is not None
    return slot.holder.slice(slot.index + piece.first, piece.count)


def _alignment(piece: Slice) -> int:
    """What an operand begins at a multiple of, as far as it has to: a part of a tuple needs no more than its own size."""
    if piece == piece.reg.whole:
        return piece.reg.align
    return gcd(piece.first, piece.reg.align, 1 << (piece.count - 1).bit_length())


def _meet(a: Slice, b: Slice) -> bool:
    return a.first < b.first + b.count and b.first < a.first + a.count


def _replace(inst: Inst, reads: dict[Slice, Slice], written: dict[Slice, Slice]) -> None:
    inst.uses = tuple([reads.get(use, use) if isinstance(use, Slice) else use for use in inst.uses])
    inst.implicit_uses = tuple([reads.get(piece, piece) for piece in inst.implicit_uses])
    inst.defs = tuple([written.get(piece, piece) for piece in inst.defs])
    inst.implicit_defs = tuple([written.get(piece, piece) for piece in inst.implicit_defs])
    if inst.predicate is not None:
        inst.predicate = reads.get(inst.predicate, inst.predicate)
