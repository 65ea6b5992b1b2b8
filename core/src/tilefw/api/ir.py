"""The IR facade: all of xDSL and of tile IR that a plugin's lowering needs. Core alone imports xDSL itself."""

from __future__ import annotations

from xdsl.builder import Builder, ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FileLineColLoc,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    VectorType,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.scf import ConditionOp, ForOp, IfOp, WhileOp, YieldOp
from xdsl.ir import Attribute, Block, BlockArgument, Dialect, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from tilefw.passes.fold import evaluate_known
from tilefw.passes.requirements import refuse_unserved
from tilefw.tile import elementwise, numbers, types
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.block_ops import BlockAccess
from tilefw.tile.dialect.combine_op import CombineOp
from tilefw.tile.dialect.context import Tile, context
from tilefw.tile.dialect.elementwise_op import ElementwiseOp, build
from tilefw.tile.dialect.kernel_info import argument_attributes, entry_of
from tilefw.tile.dialect.memory_ops import PointerAccess
from tilefw.tile.dialect.ops import (
    AddPtrOp,
    AtomicCasOp,
    AtomicRmwOp,
    BarrierOp,
    BroadcastOp,
    ConstantOp,
    DotOp,
    DotScaledOp,
    ExpandDimsOp,
    FlipOp,
    GatherOp,
    IotaOp,
    JoinOp,
    LoadBlockOp,
    LoadOp,
    NumProgramsOp,
    ProgramIdOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    SplatOp,
    SplitOp,
    StoreBlockOp,
    StoreOp,
    TransOp,
)
from tilefw.tile.dialect.structural_op import IndexAlgebra, StructuralOp
from tilefw.tile.elementwise import ROWS, ElementwiseRow
from tilefw.tile.text.module import parse, verify, with_locations
from tilefw.tile.text.source_location import place_of
from tilefw.tile.types import Fp8E4B15Type, PtrType

__all__ = [
    "AddPtrOp", "ArrayAttr", "AtomicCasOp", "AtomicOp", "AtomicRmwOp", "Attribute", "BarrierOp", "Block", "BlockAccess",
    "BlockArgument", "BroadcastOp", "Builder", "CombineOp", "ConditionOp", "ConstantOp", "Context", "DenseArrayBase", "Dialect",
    "DotOp", "DotScaledOp", "ElementwiseOp", "ElementwiseRow", "ExpandDimsOp", "FileLineColLoc", "FlipOp", "FloatAttr", "ForOp",
    "Fp8E4B15Type", "FuncOp", "FunctionType", "GatherOp", "IfOp", "ImplicitBuilder", "InsertPoint", "IntegerAttr", "IntegerType",
    "IndexAlgebra", "IotaOp", "JoinOp", "LoadBlockOp", "LoadOp", "ModuleOp", "ModulePass", "NumProgramsOp", "OpResult", "Operation",
    "PatternRewriteWalker", "PatternRewriter", "PointerAccess", "ProgramIdOp", "PtrType", "ROWS", "ReduceOp", "Region",
    "ReshapeOp", "ReturnOp", "RewritePattern", "Rewriter", "SSAValue", "ScanOp", "SplatOp", "SplitOp", "StoreBlockOp", "StoreOp",
    "StringAttr", "StructuralOp", "TensorType", "Tile", "TransOp", "UnitAttr", "VectorType", "VerifyException", "WhileOp",
    "YieldOp", "argument_attributes", "build", "context", "elementwise", "entry_of", "evaluate_known", "numbers",
    "op_type_rewrite_pattern", "parse", "place_of", "refuse_unserved", "types", "verify", "with_locations",
]
