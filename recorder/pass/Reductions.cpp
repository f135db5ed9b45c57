// Reductions.cpp: accumulation by an associative operator, through a loop's phi or through memory.
#include "Loops.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace tracekit {

static StringRef minMaxOperator(const SelectInst &Select) {
  const Value *Left = nullptr, *Right = nullptr;
  switch (matchSelectPattern(&Select, Left, Right).Flavor) {
  case SPF_SMIN:
  case SPF_UMIN:
  case SPF_FMINNUM:
    return "min";
  case SPF_SMAX:
  case SPF_UMAX:
  case SPF_FMAXNUM:
    return "max";
  default:
    return "";
  }
}

static StringRef intrinsicOperator(const IntrinsicInst &I, const Value *Through) {
  switch (I.getIntrinsicID()) {
  case Intrinsic::smin:
  case Intrinsic::umin:
  case Intrinsic::minnum:
  case Intrinsic::minimum:
    return "min";
  case Intrinsic::smax:
  case Intrinsic::umax:
  case Intrinsic::maxnum:
  case Intrinsic::maximum:
    return "max";
  case Intrinsic::fmuladd:
  case Intrinsic::fma: // the sum only, not the factors
    return Through == I.getArgOperand(2) && Through != I.getArgOperand(0) && Through != I.getArgOperand(1) ? "+" : "";
  default:
    return "";
  }
}

StringRef associativeOperator(const Instruction &I, const Value *Through) {
  if (auto *Intrinsic = dyn_cast<IntrinsicInst>(&I))
    return intrinsicOperator(*Intrinsic, Through);
  if (auto *Select = dyn_cast<SelectInst>(&I))
    return minMaxOperator(*Select);
  if (I.getNumOperands() == 2 && I.getOperand(0) == I.getOperand(1))
    return ""; // x + x is no accumulation
  switch (I.getOpcode()) {
  case Instruction::Sub:
  case Instruction::FSub:
    return I.getOperand(0) == Through ? "+" : "";
  case Instruction::Add:
  case Instruction::FAdd:
    return "+";
  case Instruction::Mul:
  case Instruction::FMul:
    return "*";
  case Instruction::And:
    return "&";
  case Instruction::Or:
    return "|";
  case Instruction::Xor:
    return "^";
  default:
    return "";
  }
}

namespace {

/// The values that grow out of a phi, inside its loop, by one operator: phis (also of inner loops), selections between
/// accumulated values, and the operator's results.
class Accumulation {
public:
  Accumulation(PHINode &Phi, const Loop &L) : L(L) { Values.insert(&Phi); }

  /// The operator, or "" if something else is done with an accumulated value.
  StringRef match(PHINode &Phi) {
    for (size_t K = 0; K < Values.size(); ++K)
      for (User *U : Values[K]->users())
        if (auto *I = dyn_cast<Instruction>(U); I && L.contains(I) && !follow(*I, Values[K]))
          return "";
    for (BasicBlock *Before : Phi.blocks())
      if (L.contains(Before) && !Values.contains(Phi.getIncomingValueForBlock(Before)))
        return "";
    return wellFormed() ? Operator : "";
  }

private:
  bool follow(Instruction &I, Value *From) {
    if (isa<PHINode>(I) || isAccumulatedSelect(I)) {
      Values.insert(&I);
      return true;
    }
    if (auto *Compare = dyn_cast<CmpInst>(&I)) // half of the pattern x < y ? x : y
      return all_of(Compare->users(), [](User *U) {
        auto *Select = dyn_cast<SelectInst>(U);
        return Select && !minMaxOperator(*Select).empty();
      });
    StringRef Applied = associativeOperator(I, From);
    if (Applied.empty() || (!Operator.empty() && Operator != Applied))
      return false;
    Operator = Applied;
    Values.insert(&I);
    Steps.insert(&I);
    return true;
  }

  static bool isAccumulatedSelect(const Instruction &I) {
    auto *Select = dyn_cast<SelectInst>(&I);
    return Select && minMaxOperator(*Select).empty();
  }

  /// Phis and selections may only choose between accumulated values; a step accumulates one of its operands.
  bool wellFormed() const {
    for (Value *V : Values) {
      if (V == Values[0])
        continue;
      auto *I = cast<Instruction>(V);
      if (auto *Phi = dyn_cast<PHINode>(I)) {
        if (!all_of(Phi->incoming_values(), [&](Value *In) { return Values.contains(In); }))
          return false;
      } else if (Steps.contains(I)) {
        if (count_if(I->operands(), [&](Value *In) { return Values.contains(In); }) != 1)
          return false;
      } else if (Values.contains(I->getOperand(0)) || !Values.contains(I->getOperand(1)) ||
                 !Values.contains(I->getOperand(2))) {
        return false;
      }
    }
    return true;
  }

  const Loop &L;
  SmallSetVector<Value *, 8> Values;
  SmallPtrSet<Instruction *, 8> Steps;
  StringRef Operator;
};

} // namespace

/// `V` without conversions between truth values and integers.
static Value *asTruth(Value *V) {
  for (;;) {
    if (auto *Cast = dyn_cast<CastInst>(V); Cast && (isa<ZExtInst>(Cast) || isa<TruncInst>(Cast))) {
      V = Cast->getOperand(0);
    } else if (auto *Compare = dyn_cast<ICmpInst>(V);
               Compare && Compare->getPredicate() == CmpInst::ICMP_NE && match(Compare->getOperand(1), m_Zero())) {
      V = Compare->getOperand(0);
    } else {
      return V;
    }
  }
}

/// The instruction at the end of a chain of conversions of `V`, each the only user of the one before inside the loop.
static Instruction *onlyReader(Value *V, const Loop &L) {
  for (;;) {
    Instruction *Reader = nullptr;
    for (User *U : V->users())
      if (auto *I = cast<Instruction>(U); L.contains(I)) {
        if (Reader)
          return nullptr;
        Reader = I;
      }
    if (!Reader || asTruth(Reader) == Reader)
      return Reader;
    V = Reader;
  }
}

/// Whether the blocks between `Branch` and `Merge` are entered by `Branch` alone and do nothing but compute: they run
/// more often where no iteration knows what those before it found.
static bool onlyComputes(const BranchInst &Branch, const BasicBlock &Merge, const Loop &L) {
  SmallPtrSet<const BasicBlock *, 8> Between = {Branch.getParent()};
  SmallVector<const BasicBlock *, 8> Open(successors(Branch.getParent()));
  while (!Open.empty()) {
    const BasicBlock *BB = Open.pop_back_val();
    if (BB == &Merge || !Between.insert(BB).second)
      continue;
    if (BB == L.getHeader() || !L.contains(BB) ||
        any_of(*BB, [](const Instruction &I) { return I.mayHaveSideEffects(); }))
      return false;
    Open.append(succ_begin(BB), succ_end(BB));
  }
  auto FromThere = [&](const BasicBlock *BB) {
    return all_of(predecessors(BB), [&](const BasicBlock *Before) { return Between.contains(Before); });
  };
  return FromThere(&Merge) &&
         all_of(Between, [&](const BasicBlock *BB) { return BB == Branch.getParent() || FromThere(BB); });
}

/// `phi && x` and `phi || x`, as branches or as a selection, where nothing else looks at the phi.
static StringRef logicalOperator(PHINode &Phi, const Loop &L) {
  const BasicBlock *Latch = L.getLoopLatch();
  Instruction *Reader = Latch ? onlyReader(&Phi, L) : nullptr;
  if (!Reader)
    return "";
  Value *Next = asTruth(Phi.getIncomingValueForBlock(Latch));
  if (auto *Select = dyn_cast<SelectInst>(Reader); Select && Select == Next) {
    if (asTruth(Select->getCondition()) != &Phi)
      return "";
    if (match(Select->getFalseValue(), m_Zero()))
      return "&&";
    return match(Select->getTrueValue(), m_One()) ? "||" : "";
  }
  auto *Branch = dyn_cast<BranchInst>(Reader);
  auto *Merged = dyn_cast<PHINode>(Next);
  if (!Branch || !Merged || !Merged->getType()->isIntegerTy(1) || !L.contains(Merged) || Merged == &Phi)
    return "";
  int Direct = Merged->getBasicBlockIndex(Branch->getParent());
  if (Direct < 0 || !onlyComputes(*Branch, *Merged->getParent(), L))
    return "";
  bool IfFalse = Branch->getSuccessor(1) == Merged->getParent();
  Value *Decided = Merged->getIncomingValue(Direct);
  if (Branch->getSuccessor(0) == Branch->getSuccessor(1))
    return "";
  if (IfFalse && match(Decided, m_Zero()))
    return "&&";
  return !IfFalse && match(Decided, m_One()) ? "||" : "";
}

std::pair<uint32_t, StringRef> classifyPhi(PHINode &Phi, const Loop &L, ScalarEvolution &SE) {
  if (SE.isSCEVable(Phi.getType())) {
    auto *Evolution = dyn_cast<SCEVAddRecExpr>(SE.getSCEV(&Phi));
    if (Evolution && Evolution->getLoop() == &L && Evolution->isAffine())
      return {TK_PHI_INDUCTION, ""};
  }
  if (none_of(Phi.users(), [&](const User *U) { return L.contains(cast<Instruction>(U)); }))
    return {TK_PHI_LAST_VALUE, ""};
  StringRef Operator = Accumulation(Phi, L).match(Phi);
  if (Operator.empty())
    Operator = logicalOperator(Phi, L);
  if (!Operator.empty())
    return {TK_PHI_REDUCTION, Operator};
  return {TK_PHI_RECURRENCE, ""};
}

/// What the value loaded by `Load` is combined with before it is stored, if all steps apply one operator and nothing
/// else reads what they make. `Store` gets the store at the end. A comparison may be part of a minimum or maximum only
/// in a loop: there, the image's edges show where else its outcome goes.
static StringRef updateChain(LoadInst &Load, bool InLoop, StoreInst *&Store) {
  StringRef Operator;
  Value *V = &Load;
  for (;;) {
    SmallVector<Instruction *, 2> Readers;
    for (User *U : V->users())
      if (auto *I = dyn_cast<Instruction>(U); I && !isa<CmpInst>(I))
        Readers.push_back(I);
      else if (!I || !InLoop || !all_of(I->users(), [](User *Of) { return isa<SelectInst>(Of); }))
        return "";
    if (Readers.size() != 1)
      return "";
    Instruction *Next = Readers.front();
    if ((Store = dyn_cast<StoreInst>(Next)))
      return Store->getValueOperand() == V ? Operator : "";
    if (!isa<ZExtInst, SExtInst, TruncInst, BitCastInst>(Next)) {
      StringRef Applied = associativeOperator(*Next, V);
      if (Applied.empty() || (!Operator.empty() && Operator != Applied))
        return "";
      Operator = Applied;
    }
    V = Next;
  }
}

static bool sameAddress(Value *A, Value *B, ScalarEvolution &SE) {
  return A == B || (SE.isSCEVable(A->getType()) && SE.getSCEV(A) == SE.getSCEV(B));
}

static StringRef atomicOperator(const AtomicRMWInst &I) {
  switch (I.getOperation()) {
  case AtomicRMWInst::Add:
  case AtomicRMWInst::Sub:
  case AtomicRMWInst::FAdd:
  case AtomicRMWInst::FSub:
    return "+";
  case AtomicRMWInst::And:
    return "&";
  case AtomicRMWInst::Or:
    return "|";
  case AtomicRMWInst::Xor:
    return "^";
  case AtomicRMWInst::Min:
  case AtomicRMWInst::UMin:
  case AtomicRMWInst::FMin:
    return "min";
  case AtomicRMWInst::Max:
  case AtomicRMWInst::UMax:
  case AtomicRMWInst::FMax:
    return "max";
  default:
    return "";
  }
}

void describeUpdates(const SegmentedFunction &S, const FunctionRows &Rows, const LoopInfo &LI, ScalarEvolution &SE,
                     Unit &U) {
  for (const Operation &Op : S.Ops) {
    if (!Op.Origin)
      continue;
    bool InLoop = LI.getLoopFor(Op.Origin->getParent());
    if (auto *Atomic = dyn_cast<AtomicRMWInst>(Op.Origin)) {
      Row OpRow = Rows.OpsOf.lookup(Atomic).first;
      if (StringRef Operator = atomicOperator(*Atomic); !Operator.empty() && Atomic->use_empty())
        U.Updates.push_back({OpRow, OpRow, U.string(Operator)});
    } else if (auto *Load = dyn_cast<LoadInst>(Op.Origin)) {
      StoreInst *Store = nullptr;
      StringRef Operator = updateChain(*Load, InLoop, Store);
      if (!Operator.empty() && Rows.OpsOf.count(Store) && Load->getType() == Store->getValueOperand()->getType() &&
          LI.getLoopFor(Load->getParent()) == LI.getLoopFor(Store->getParent()) &&
          sameAddress(Load->getPointerOperand(), Store->getPointerOperand(), SE))
        U.Updates.push_back({Rows.OpsOf.lookup(Load).first, Rows.OpsOf.lookup(Store).first, U.string(Operator)});
    }
  }
}

} // namespace tracekit
