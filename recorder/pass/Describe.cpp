// Describe.cpp: see Describe.h.
#include "Describe.h"

#include "Compat.h"

using namespace llvm;

namespace tracekit {

Row firstBlock(const SegmentedFunction &S, const FunctionRows &Rows, const BasicBlock *BB) {
  auto Known = S.OfBlock.find(BB);
  return Known == S.OfBlock.end() ? TK_NONE : Rows.FirstBlock + Known->second.first;
}

Row lastBlock(const SegmentedFunction &S, const FunctionRows &Rows, const BasicBlock *BB) {
  auto Known = S.OfBlock.find(BB);
  return Known == S.OfBlock.end() ? TK_NONE : Rows.FirstBlock + Known->second.second;
}

static tk_row_functions functionRow(const Function &F, Unit &U, SourceMap &Sources, CallSites &Calls) {
  tk_row_functions R = {};
  const DISubprogram *Source = F.getSubprogram();
  R.name = U.string(F.getName());
  R.source_name = Source ? U.string(Source->getName()) : R.name;
  R.signature = Calls.signature(F.getFunctionType());
  R.location = Source ? Sources.declaration(Source->getFile(), Source->getLine(), Source->getName()) : TK_NONE;
  R.flags = (F.hasAddressTaken() ? TK_FUNCTION_ADDRESS_TAKEN : 0) | (F.hasLocalLinkage() ? TK_FUNCTION_LOCAL : 0) |
            (F.isVarArg() ? TK_FUNCTION_VARARGS : 0) |
            (F.callsFunctionThatReturnsTwice() ? TK_FUNCTION_RETURNS_TWICE : 0);
  return R;
}

static Row segmentLocation(const Segment &S, SourceMap &Sources) {
  for (Instruction *I = S.Begin; I; I = I == S.End ? nullptr : I->getNextNode())
    if (I->getDebugLoc() && I->getDebugLoc().getLine() && !I->isDebugOrPseudoInst())
      return Sources.location(I->getDebugLoc());
  return TK_NONE;
}

static tk_row_ops opRow(const Operation &Op, Unit &U, SourceMap &Sources) {
  tk_row_ops R = {};
  bool Dynamic = Op.Flags & TK_OPFLAG_DYNAMIC_SIZE;
  R.size = Dynamic ? 0 : Op.Size;
  R.location = Op.Origin ? Sources.location(Op.Origin->getDebugLoc()) : TK_NONE;
  R.base = R.first_term = R.defines = TK_NONE;
  R.kind = Op.Kind;
  R.flags = Op.Flags;
  R.type_class = Op.TypeClass;
  R.base_kind = Op.Address ? TK_BASE_RECORDED : TK_BASE_NO_ADDRESS;
  if (Op.Kind == TK_OP_STACK_ALLOC && Op.Address) {
    StringRef Variable = variableName(Op.Address);
    R.name = U.string(Variable.empty() ? Op.Address->getName() : Variable);
  }
  return R;
}

FunctionRows describe(const SegmentedFunction &S, Unit &U, SourceMap &Sources, CallSites &Calls,
                      const TargetLibraryInfo &TLI) {
  FunctionRows Rows;
  Rows.Function = U.Functions.size();
  Rows.FirstBlock = U.Blocks.size();
  Rows.FirstOp = U.Ops.size();
  tk_row_functions Self = functionRow(*S.F, U, Sources, Calls);
  Self.first_path = U.Paths.size();
  Self.first_block = Rows.FirstBlock;
  Self.first_op = Rows.FirstOp;
  Self.paths = Self.blocks = S.Segments.size();
  Self.ops = S.Ops.size();
  U.Functions.push_back(Self);

  DenseMap<const Instruction *, Row> CallOps; // a call's operation, for the block that continues it
  for (const Segment &Seg : S.Segments) {
    Row Block = U.Blocks.size();
    Row FirstOp = U.Ops.size();
    for (const Operation &Op : ArrayRef(S.Ops).slice(Seg.FirstOp, Seg.Ops)) {
      Row OpIndex = U.Ops.size();
      U.Ops.push_back(opRow(Op, U, Sources));
      if (Op.Kind == TK_OP_CALL) {
        U.Ops.back().base = Calls.add(*cast<CallBase>(Op.Origin), TLI, OpIndex, Block);
        CallOps[Op.Origin] = OpIndex;
      }
      if (Op.Origin && Op.Kind != TK_OP_LANDING)
        Rows.OpsOf.try_emplace(Op.Origin, OpIndex, 0).first->second.second += 1;
    }
    Row CallOp = Seg.EndsWithCall ? Row(U.Ops.size() - 1) : TK_NONE;
    U.Paths.push_back({Row(U.PathBlocks.size()), 1, Seg.Words, 0});
    U.PathBlocks.push_back({Block});
    U.Blocks.push_back({Rows.Function, TK_NONE, FirstOp, Seg.Ops, Seg.Flags, CallOp, TK_NONE,
                        segmentLocation(Seg, Sources)});
  }
  for (size_t K = 0; K < S.Segments.size(); ++K)
    if (Instruction *Call = S.Segments[K].Continues)
      U.Blocks[Rows.FirstBlock + K].continues = CallOps.lookup(Call);
  return Rows;
}

} // namespace tracekit
