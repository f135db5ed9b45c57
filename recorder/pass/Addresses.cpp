// Addresses.cpp: see Addresses.h.
#include "Addresses.h"
#include "Compat.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace tracekit {
namespace {

/// What a register holds: a value of the program, or an expression that does not change in a loop.
using Key = PointerUnion<const Value *, const SCEV *>;

/// A growing part of an address.
struct Growth {
  const Loop *L;
  const SCEV *Stride;
};

/// An address as base + offset + growth. With a Home the base is known where that loop is entered.
struct Reference {
  Key Base;
  int64_t Offset = 0;
  SmallVector<Growth, 2> Growths;
  const Loop *Home = nullptr;
};

/// A place that records a key: an operation, or the end of a basic block before a loop.
struct Definition {
  Key What;
  unsigned Op;                        // in S.Ops, or ~0u
  const BasicBlock *Before = nullptr; // then recorded at its end
  bool Used = false;
  Row Register = TK_NONE;
};

class Planner {
public:
  Planner(SegmentedFunction &S, const DominatorTree &DT, const LoopInfo &LI, ScalarEvolution &SE,
          const GlobalRows &Globals, bool GroundTruth)
      : S(S), DT(DT), LI(LI), SE(SE), Globals(Globals), DL(S.F->getParent()->getDataLayout()),
        Expander(expanderFor<SCEVExpander>(SE, DL, "tk.base")), WithinBlocks(callsReturnTwice(*S.F)),
        GroundTruth(GroundTruth) {}

  void run() {
    References.resize(S.Ops.size());
    for (const Segment &Seg : S.Segments)
      for (unsigned K = Seg.FirstOp; K < Seg.FirstOp + Seg.Ops; ++K)
        if (isDerivable(S.Ops[K]))
          References[K] = refer(S.Ops[K], Seg.Parent);
    walk([&](const BasicBlock *BB) { define(BB); }, [&](size_t Before) { forget(Before); });
    size_t Registers = 0;
    walk([&](const BasicBlock *BB) { Registers = number(BB, Registers); }, [&](size_t Before) { Registers = Before; },
         [&] { return Registers; });
    apply();
  }

private:
  static bool isDerivable(const Operation &Op) {
    return Op.BaseKind == TK_BASE_RECORDED && Op.Layout == LaneLayout::Whole &&
           (Op.Kind <= TK_OP_SET || Op.Kind == TK_OP_STACK_ALLOC || Op.Kind == TK_OP_STACK_FREE ||
            Op.Kind == TK_OP_POINTER);
  }

  Reference refer(const Operation &Op, const BasicBlock *BB);
  Reference plain(const Value *Address);
  bool affine(const Value *Address, const Loop *Inner, Reference &R);
  const Loop *home(const Reference &R, const Loop *Inner);
  bool canRecordBefore(const Loop *L, const Reference &R);
  bool hasRoom(const Segment &Last, const BasicBlock *Before, const Reference &R) const;
  bool isKnown(Key What) const;

  template <typename Enter, typename Leave> void walk(Enter enter, Leave leave) {
    walk(enter, leave, [&] { return Log.size(); });
  }
  template <typename Enter, typename Leave, typename Mark> void walk(Enter enter, Leave leave, Mark mark);
  void define(const BasicBlock *BB);
  void define(Key What, unsigned Op, const BasicBlock *Before);
  void forget(size_t Before);
  size_t number(const BasicBlock *BB, size_t Registers);
  unsigned definitionOf(Key What);

  void apply();
  void apply(Operation &Op, unsigned K);
  Operation baseOperation(const Definition &D);

  SegmentedFunction &S;
  const DominatorTree &DT;
  const LoopInfo &LI;
  ScalarEvolution &SE;
  const GlobalRows &Globals;
  const DataLayout &DL;
  SCEVExpander Expander;
  const bool WithinBlocks; // setjmp may return a second time: registers are not carried from block to block
  const bool GroundTruth;

  std::vector<Reference> References;                           // by operation
  DenseMap<const BasicBlock *, SmallSetVector<Key, 4>> Wanted; // to be recorded at the end of a block
  std::vector<Definition> Definitions;
  DenseMap<const BasicBlock *, std::pair<unsigned, unsigned>> DefinedIn; // first definition and one past the last
  DenseMap<Key, unsigned> Current;                                       // the definition that holds here
  std::vector<std::pair<Key, unsigned>> Log;                             // what Current had before; ~0u: nothing
  DenseMap<unsigned, SmallVector<unsigned, 3>> Uses;                     // operation -> definitions of base and strides
};

/// The image tells the address, no register is needed.
bool Planner::isKnown(Key What) const {
  const auto *V = dyn_cast_if_present<const Value *>(What);
  return V && Globals.count(V);
}

Reference Planner::plain(const Value *Address) {
  Reference R;
  APInt Offset(DL.getIndexTypeSizeInBits(Address->getType()), 0);
  R.Base = Address->stripAndAccumulateConstantOffsets(DL, Offset, /*AllowNonInbounds=*/true);
  R.Offset = Offset.getSExtValue();
  return R;
}

Reference Planner::refer(const Operation &Op, const BasicBlock *BB) {
  Reference R = plain(Op.Address);
  const Loop *Inner = LI.getLoopFor(BB);
  if (isKnown(R.Base) || !Inner || WithinBlocks)
    return R;
  Reference InLoop;
  if (!affine(Op.Address, Inner, InLoop))
    return R;
  if (!isKnown(InLoop.Base) || !InLoop.Growths.empty()) {
    InLoop.Home = home(InLoop, Inner);
    if (!InLoop.Home)
      return R;
    const BasicBlock *Before = InLoop.Home->getLoopPreheader();
    if (!isKnown(InLoop.Base))
      Wanted[Before].insert(InLoop.Base);
    for (const Growth &G : InLoop.Growths)
      if (!isa<SCEVConstant>(G.Stride))
        Wanted[Before].insert(G.Stride);
  }
  return InLoop;
}

/// Splits an address into a base, a constant, and one term for each loop in which it grows steadily.
bool Planner::affine(const Value *Address, const Loop *Inner, Reference &R) {
  if (!SE.isSCEVable(Address->getType()))
    return false;
  const SCEV *Rest = SE.getSCEV(const_cast<Value *>(Address));
  while (auto *Recurrence = dyn_cast<SCEVAddRecExpr>(Rest)) {
    if (!Recurrence->isAffine() || !Recurrence->getLoop()->contains(Inner) || R.Growths.size() == 16)
      return false;
    R.Growths.push_back({Recurrence->getLoop(), Recurrence->getStepRecurrence(SE)});
    Rest = Recurrence->getStart();
  }
  if (auto *Sum = dyn_cast<SCEVAddExpr>(Rest))
    if (auto *Constant = dyn_cast<SCEVConstant>(Sum->getOperand(0))) {
      if (Constant->getAPInt().getSignificantBits() > 64)
        return false;
      R.Offset = Constant->getAPInt().getSExtValue();
      Rest = SE.getMinusSCEV(Rest, Constant);
    }
  if (auto *Unknown = dyn_cast<SCEVUnknown>(Rest); Unknown && Unknown->getType()->isPointerTy()) {
    Reference Stripped = plain(Unknown->getValue());
    R.Base = Stripped.Base;
    R.Offset += Stripped.Offset;
  } else {
    R.Base = Rest;
  }
  return DL.getTypeSizeInBits(Rest->getType()) == 64;
}

/// Whether the segment that ends `Before` can record what `R` needs, beside all else: its words, as many of ground
/// truth at most and the one of its number, and what other references want there.
bool Planner::hasRoom(const Segment &Last, const BasicBlock *Before, const Reference &R) const {
  auto Known = Wanted.find(Before);
  size_t Bases = (Known == Wanted.end() ? 0 : Known->second.size()) + 1 + R.Growths.size();
  return (GroundTruth ? 2 * Last.Words + 1 : Last.Words) + Bases <= MaxWords;
}

/// Whether base and strides of `R` can be computed where `L` is entered.
bool Planner::canRecordBefore(const Loop *L, const Reference &R) {
  const BasicBlock *Before = L->getLoopPreheader();
  auto Known = S.OfBlock.find(Before);
  if (!Before || Known == S.OfBlock.end() || S.Segments[Known->second.second].EndsWithCall)
    return false;
  const Instruction *End = Before->getTerminator();
  if (!hasRoom(S.Segments[Known->second.second], Before, R))
    return false;
  auto Computable = [&](const SCEV *Expression) {
    return SE.isLoopInvariant(Expression, L) && SE.dominates(Expression, Before) &&
           Expander.isSafeToExpandAt(Expression, End);
  };
  if (auto *Expression = dyn_cast_if_present<const SCEV *>(R.Base)) {
    if (!Computable(Expression))
      return false;
  } else if (auto *I = dyn_cast<Instruction>(cast<const Value *>(R.Base)); I && !DT.dominates(I, End)) {
    return false;
  }
  return all_of(R.Growths, [&](const Growth &G) { return isa<SCEVConstant>(G.Stride) || Computable(G.Stride); });
}

/// The outermost loop before which the base is the same, as long as what is in it runs in each iteration around it.
const Loop *Planner::home(const Reference &R, const Loop *Inner) {
  const Loop *L = Inner;
  for (const Growth &G : R.Growths)
    if (G.L->contains(L))
      L = G.L;
  if (!canRecordBefore(L, R))
    return nullptr;
  for (const Loop *Around = L->getParentLoop(); Around; L = Around, Around = Around->getParentLoop()) {
    const BasicBlock *Latch = Around->getLoopLatch();
    if (!Latch || !DT.dominates(L->getHeader(), Latch) || !canRecordBefore(Around, R))
      break;
  }
  return L;
}

/// Visits the basic blocks in pre-order on the dominator tree; `leave` gets what `mark` was when a block was entered.
template <typename Enter, typename Leave, typename Mark> void Planner::walk(Enter enter, Leave leave, Mark mark) {
  struct Visit {
    const DomTreeNode *Node;
    DomTreeNode::const_iterator Next;
    size_t Before;
  };
  SmallVector<Visit, 32> Open;
  auto Begin = [&](const DomTreeNode *Node) {
    Open.push_back({Node, Node->begin(), mark()});
    enter(Node->getBlock());
  };
  Begin(DT.getRootNode());
  while (!Open.empty()) {
    Visit &Top = Open.back();
    if (Top.Next != Top.Node->end()) {
      Begin(*Top.Next++);
    } else {
      leave(Top.Before);
      Open.pop_back();
    }
  }
}

unsigned Planner::definitionOf(Key What) {
  auto Known = Current.find(What);
  return Known == Current.end() ? ~0u : Known->second;
}

void Planner::define(Key What, unsigned Op, const BasicBlock *Before) {
  Log.push_back({What, definitionOf(What)});
  Current[What] = Definitions.size();
  Definitions.push_back({What, Op, Before});
}

void Planner::forget(size_t Before) {
  for (; Log.size() > Before; Log.pop_back()) {
    auto [What, Earlier] = Log.back();
    if (Earlier == ~0u)
      Current.erase(What);
    else
      Current[What] = Earlier;
  }
}

/// Finds out which operations of a block record their base, and which use an earlier definition.
void Planner::define(const BasicBlock *BB) {
  unsigned First = Definitions.size();
  auto Known = S.OfBlock.find(BB);
  if (Known == S.OfBlock.end())
    return;
  if (WithinBlocks)
    Current.clear(), Log.clear();
  for (unsigned Number = Known->second.first; Number <= Known->second.second; ++Number) {
    const Segment &Seg = S.Segments[Number];
    if (WithinBlocks && (Seg.Flags & TK_BLOCK_LANDING))
      Current.clear();
    for (unsigned K = Seg.FirstOp; K < Seg.FirstOp + Seg.Ops; ++K) {
      const Reference &R = References[K];
      if (R.Base.isNull() || isKnown(R.Base))
        continue;
      unsigned From = definitionOf(R.Base);
      if (From == ~0u) {
        define(R.Base, K, nullptr);
      } else {
        Definitions[From].Used = true;
        Uses[K].push_back(From);
      }
    }
    for (unsigned K = Seg.FirstOp; K < Seg.FirstOp + Seg.Ops; ++K)
      for (const Growth &G : References[K].Growths)
        if (!isa<SCEVConstant>(G.Stride)) {
          unsigned From = definitionOf(G.Stride);
          Definitions[From].Used = true;
          Uses[K].push_back(From);
        }
  }
  if (auto Here = Wanted.find(BB); Here != Wanted.end())
    for (Key What : Here->second)
      if (definitionOf(What) == ~0u)
        define(What, ~0u, BB);
  DefinedIn[BB] = {First, unsigned(Definitions.size())};
}

/// Registers by depth on the dominator tree: those of branches that exclude each other are the same.
size_t Planner::number(const BasicBlock *BB, size_t Registers) {
  auto Known = DefinedIn.find(BB);
  if (Known != DefinedIn.end())
    for (unsigned K = Known->second.first; K < Known->second.second; ++K)
      if (Definitions[K].Used)
        Definitions[K].Register = Registers++;
  S.Registers = std::max<unsigned>(S.Registers, Registers);
  return Registers;
}

Operation Planner::baseOperation(const Definition &D) {
  Operation Op{TK_OP_BASE};
  Instruction *End = const_cast<Instruction *>(D.Before->getTerminator());
  Op.At = End;
  if (auto *Expression = dyn_cast_if_present<const SCEV *>(D.What))
    Op.recordInPlace(Expander.expandCodeFor(Expression, Expression->getType(), End));
  else
    Op.recordInPlace(const_cast<Value *>(cast<const Value *>(D.What)));
  Op.Defines = D.Register;
  return Op;
}

void Planner::apply(Operation &Op, unsigned K) {
  const Reference &R = References[K];
  Op.Offset = R.Offset;
  auto Known = Uses.find(K);
  ArrayRef<unsigned> From = Known == Uses.end() ? ArrayRef<unsigned>() : ArrayRef<unsigned>(Known->second);
  if (isKnown(R.Base)) {
    Op.BaseKind = TK_BASE_GLOBAL;
    Op.BaseRow = Globals.lookup(cast<const Value *>(R.Base));
  } else if (!From.empty() && Definitions[From.front()].What == R.Base) {
    Op.BaseKind = TK_BASE_REGISTER;
    Op.BaseRow = Definitions[From.front()].Register;
    From = From.drop_front();
  } else {
    Op.Base = const_cast<Value *>(cast<const Value *>(R.Base));
  }
  for (const Growth &G : R.Growths) {
    if (auto *Constant = dyn_cast<SCEVConstant>(G.Stride)) {
      Op.Terms.push_back({G.L, Constant->getAPInt().getSExtValue(), TK_NONE});
    } else {
      Op.Terms.push_back({G.L, 0, Definitions[From.front()].Register});
      From = From.drop_front();
    }
  }
}

void Planner::apply() {
  for (unsigned K = 0; K < S.Ops.size(); ++K)
    if (!References[K].Base.isNull())
      apply(S.Ops[K], K);
  for (const Definition &D : Definitions)
    if (D.Op != ~0u)
      S.Ops[D.Op].Defines = D.Register;

  std::vector<Operation> All;
  for (unsigned Number = 0; Number < S.Segments.size(); ++Number) {
    Segment &Seg = S.Segments[Number];
    unsigned First = All.size();
    All.insert(All.end(), S.Ops.begin() + Seg.FirstOp, S.Ops.begin() + Seg.FirstOp + Seg.Ops);
    auto Here = DefinedIn.find(Seg.Parent);
    if (Here != DefinedIn.end() && S.OfBlock.lookup(Seg.Parent).second == Number)
      for (unsigned K = Here->second.first; K < Here->second.second; ++K)
        if (Definitions[K].Before && Definitions[K].Used)
          All.push_back(baseOperation(Definitions[K]));
    Seg.FirstOp = First;
    Seg.Ops = All.size() - First;
  }
  S.Ops = std::move(All);
}

} // namespace

void deriveAddresses(SegmentedFunction &S, const DominatorTree &DT, const LoopInfo &LI, ScalarEvolution &SE,
                     const GlobalRows &Globals, bool GroundTruth) {
  Planner(S, DT, LI, SE, Globals, GroundTruth).run();
}

} // namespace tracekit
