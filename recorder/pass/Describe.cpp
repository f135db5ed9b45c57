// Describe.cpp: see Describe.h.
#include "Describe.h"

#include "Compat.h"
#include "Names.h"
#include "Temporaries.h"
#include "Touches.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"

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
  R.source_name = U.string(sourceName(F.getName(), Source));
  R.signature = Calls.signature(F.getFunctionType());
  R.location = Source ? Sources.declaration(Source->getFile(), Source->getLine(), Source) : TK_NONE;
  R.flags = (F.hasAddressTaken() ? TK_FUNCTION_ADDRESS_TAKEN : 0) | (F.hasLocalLinkage() ? TK_FUNCTION_LOCAL : 0) |
            (F.isVarArg() ? TK_FUNCTION_VARARGS : 0) | (callsReturnTwice(F) ? TK_FUNCTION_RETURNS_TWICE : 0) |
            (any_of(instructions(F), isOfThread) ? TK_FUNCTION_THREAD_LOCAL : 0);
  return R;
}

static Row segmentLocation(const Segment &S, SourceMap &Sources) {
  for (Instruction *I = S.Begin; I; I = I == S.End ? nullptr : I->getNextNode())
    if (I->getDebugLoc() && I->getDebugLoc().getLine() && !I->isDebugOrPseudoInst())
      return Sources.location(I->getDebugLoc());
  return TK_NONE;
}

/// The lines that a block's code stands in, in its order, each once, beside that of the block's own location.
static void describeLines(const Segment &S, Row Block, Unit &U, SourceMap &Sources) {
  SmallVector<std::tuple<unsigned, const Metadata *, const Metadata *>, 8> Seen;
  for (Instruction *I = S.Begin; I; I = I == S.End ? nullptr : I->getNextNode()) {
    const DILocation *At = I->getDebugLoc().get();
    if (!At || !At->getLine() || I->isDebugOrPseudoInst())
      continue;
    std::tuple<unsigned, const Metadata *, const Metadata *> Line(At->getLine(), At->getFile(), At->getInlinedAt());
    if (is_contained(Seen, Line))
      continue;
    if (!Seen.empty()) // the first is the block's own
      U.Lines.push_back({Block, Sources.location(At)});
    Seen.push_back(Line);
  }
}

/// Where memory on the stack is declared, if it is a variable. Its lifetime begins where the whole declaration does,
/// which may be lines before. Of what clang has made for one loop's body, a line of that, without a column.
static Row declarationOf(const Operation &Alloc, SourceMap &Sources) {
  const DILocation *Begin = Alloc.Origin ? Alloc.Origin->getDebugLoc().get() : nullptr;
  auto Variables = Alloc.Address ? variablesOf(Alloc.Address) : decltype(variablesOf(nullptr))();
  if (Variables.empty()) {
    auto *Local = dyn_cast_or_null<AllocaInst>(Alloc.Address);
    const DILocation *Of = Local ? placeOfTemporary(*Local) : nullptr;
    return Of ? Sources.declaration(Of->getFile(), Of->getLine(), Of->getScope()->getSubprogram())
              : Sources.location(Begin);
  }
  const DILocalVariable *V = Variables.front();
  const DISubprogram *Function = V->getScope()->getSubprogram();
  if (!Begin)
    return Sources.declaration(V->getFile(), V->getLine(), Function);
  bool IsBefore = V->getLine() > Begin->getLine() && V->getFile() == Begin->getFile() &&
                  Function == Begin->getScope()->getSubprogram();
  return Sources.location(
      IsBefore ? DILocation::get(V->getContext(), V->getLine(), 0, V->getScope(), Begin->getInlinedAt()) : Begin);
}

static tk_row_ops opRow(const Operation &Op, const SourceLoops *InSource, Unit &U, SourceMap &Sources) {
  tk_row_ops R = {};
  bool Dynamic = Op.Flags & TK_OPFLAG_DYNAMIC_SIZE;
  R.size = Dynamic && !Op.ValueWords ? 0 : Op.Size; // of a value, the most that it can be
  if (Op.Kind == TK_OP_STACK_ALLOC)
    R.location = declarationOf(Op, Sources);
  else
    R.location = Op.Origin ? Sources.location(Op.Origin->getDebugLoc()) : TK_NONE;
  R.offset = Op.Offset;
  R.base = Op.BaseRow;
  R.defines = Op.Defines;
  R.first_term = TK_NONE;
  R.kind = Op.Kind;
  R.flags = Op.Flags;
  R.type_class = Op.TypeClass;
  R.base_kind = Op.BaseKind;
  if (Op.Kind == TK_OP_STACK_ALLOC && Op.Address) {
    StringRef Variable = variableName(Op.Address);
    R.name = U.string(Variable.empty() ? Op.Address->getName() : Variable);
    auto *Slot = dyn_cast<AllocaInst>(Op.Address);
    const DISubprogram *Source = Slot ? Slot->getFunction()->getSubprogram() : nullptr;
    if (Source && !isFortran(*Source) && Variable.empty() && !Slot->isStaticAlloca())
      R.use |= TK_OPUSE_ALLOCA;
  } else if (Op.Kind <= TK_OP_SET && Op.Address && Op.Address->getType()->isPointerTy()) {
    StringRef Name = namedMemory(Op.Address);
    R.name = U.string(Name);
    if (!Name.empty() && InSource && Op.Origin &&
        InSource->Accesses.mayBeByPointer(Op.Origin->getDebugLoc().get(), Name))
      R.flags |= TK_OPFLAG_BY_POINTER;
    if (Name.empty() && InSource && Op.Origin && (Op.Kind == TK_OP_LOAD || Op.Kind == TK_OP_STORE))
      if (StringRef By = InSource->Accesses.reference(Op.Origin->getDebugLoc().get(), *Op.Address); !By.empty()) {
        R.name = U.string(By);
        R.flags |= TK_OPFLAG_BY_POINTER;
        R.use |= TK_OPUSE_BY_REFERENCE;
      }
  }
  return R;
}

/// What is known of the type of what an operation, the next row of `ops`, accesses or begins.
static void describeType(const Operation &Op, const SourceLoops *InSource, Unit &U, TypeRows &Types) {
  if (Op.Kind == TK_OP_STACK_ALLOC && Op.Address) {
    auto Variables = variablesOf(Op.Address);
    if (Row Of = Variables.size() == 1 ? Types.of(Variables.front()->getType()) : TK_NONE; Of != TK_NONE)
      U.Typed.push_back({TK_TYPED_OP, Row(U.Ops.size()), Of, 0});
  } else if (InSource && Op.Kind <= TK_OP_ATOMIC && Op.Origin) {
    MemberAt At = InSource->Members.find(*Op.Origin, Op.Address);
    if (Row Of = At.Type ? Types.of(At.Type, InSource->Members.aliasOf(At.Type)) : TK_NONE; Of != TK_NONE)
      U.Typed.push_back({TK_TYPED_OP, Row(U.Ops.size()), Of, uint32_t(At.Offset)});
  }
}

static void describePaths(const SegmentedFunction &S, const Regions &Paths, Row FirstBlock, Unit &U) {
  for (size_t Number = 0; Number < Paths.Paths.size(); ++Number) {
    const auto &Path = Paths.Paths[Number];
    bool Run = Number >= Paths.firstRun();
    uint32_t Words = Run ? 1 : 0;
    Row First = U.PathBlocks.size();
    for (unsigned K : Path) {
      Words += Run ? 0 : S.Segments[K].Words;
      U.PathBlocks.push_back({FirstBlock + K});
    }
    uint32_t Flags = Run ? TK_PATH_RUN | (Paths.GroundTruth ? TK_PATH_GROUND_TRUTH : 0) : 0;
    U.Paths.push_back({First, uint32_t(Path.size()), Words, Flags});
  }
}

void describeTerms(const SegmentedFunction &S, const FunctionRows &Rows, Unit &U) {
  for (size_t K = 0; K < S.Ops.size(); ++K) {
    tk_row_ops &R = U.Ops[Rows.FirstOp + K];
    R.terms = S.Ops[K].Terms.size();
    R.first_term = R.terms ? Row(U.Terms.size()) : TK_NONE;
    for (const Term &T : S.Ops[K].Terms)
      U.Terms.push_back({T.Stride, Rows.LoopOf.lookup(T.L), T.StrideRegister});
  }
}

FunctionRows describe(const SegmentedFunction &S, const Regions &Paths, Unit &U, SourceMap &Sources, CallSites &Calls,
                      const TargetLibraryInfo &TLI, const SourceLoops *InSource, TypeRows &Types) {
  FunctionRows Rows;
  Rows.Function = U.Functions.size();
  Rows.FirstBlock = U.Blocks.size();
  Rows.FirstOp = U.Ops.size();
  tk_row_functions Self = functionRow(*S.F, U, Sources, Calls);
  Self.first_path = U.Paths.size();
  Self.first_block = Rows.FirstBlock;
  Self.first_op = Rows.FirstOp;
  Self.paths = Paths.Paths.size();
  Self.blocks = S.Segments.size();
  Self.ops = S.Ops.size();
  Self.registers = S.Registers;
  U.Functions.push_back(Self);
  describePaths(S, Paths, Rows.FirstBlock, U);

  DenseMap<const Instruction *, Row> CallOps; // a call's operation, for the block that continues it
  for (const Segment &Seg : S.Segments) {
    Row Block = U.Blocks.size();
    Row FirstOp = U.Ops.size();
    for (const Operation &Op : ArrayRef(S.Ops).slice(Seg.FirstOp, Seg.Ops)) {
      Row OpIndex = U.Ops.size();
      describeType(Op, InSource, U, Types);
      U.Ops.push_back(opRow(Op, InSource, U, Sources));
      if (Op.Kind == TK_OP_CALL) {
        U.Ops.back().base = Calls.add(*cast<CallBase>(Op.Origin), TLI, OpIndex, Block);
        CallOps[Op.Origin] = OpIndex;
      }
      if (Op.Origin && Op.Kind != TK_OP_LANDING && Op.Kind != TK_OP_POINTER)
        Rows.OpsOf.try_emplace(Op.Origin, OpIndex, 0).first->second.second += 1;
    }
    Row CallOp = Seg.EndsWithCall ? Row(U.Ops.size() - 1) : TK_NONE;
    U.Blocks.push_back(
        {Rows.Function, TK_NONE, FirstOp, Seg.Ops, Seg.Flags, CallOp, TK_NONE, segmentLocation(Seg, Sources)});
    describeLines(Seg, Block, U, Sources);
  }
  for (size_t K = 0; K < S.Segments.size(); ++K)
    if (Instruction *Call = S.Segments[K].Continues)
      U.Blocks[Rows.FirstBlock + K].continues = CallOps.lookup(Call);
  return Rows;
}

} // namespace tracekit
