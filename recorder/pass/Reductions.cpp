// Reductions.cpp: what loops accumulate by an associative operator, as rows of phis and updates.
#include "Accumulation.h"
#include "Loops.h"

#include "llvm/ADT/SetVector.h"
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

/// Whether an extreme that another phi of the header carries takes this one along.
static StringRef positionOperator(PHINode &Phi, const Loop &L, const FunctionShape &In) {
  for (PHINode &Key : L.getHeader()->phis()) {
    Accumulation Extreme(&L, In);
    if (&Key == &Phi || none_of(Phi.users(), [](const User *U) { return isa<PHINode, SelectInst>(U); }))
      continue;
    StringRef Operator = Extreme.ofPhi(Key);
    if (!Operator.empty() && Extreme.Positions.contains(&Phi))
      return Operator == "max" ? GreatestElement : LeastElement;
  }
  return "";
}

/// Whether iterations only keep a phi's value, or take another one in its place: nothing in the loop but choices uses
/// it, and nothing but choices uses those, so that no iteration looks at what one before it has assigned.
static bool isOnlyHandedOn(PHINode &Phi, const Loop &L) {
  SmallSetVector<const Instruction *, 8> Handed;
  Handed.insert(&Phi);
  for (size_t K = 0; K < Handed.size(); ++K)
    for (const Use &U : Handed[K]->uses()) {
      auto *By = cast<Instruction>(U.getUser());
      if (!L.contains(By) || By == &Phi)
        continue;
      bool IsDecision = isa<SelectInst>(By) && U.getOperandNo() == 0;
      if (IsDecision || !isa<PHINode, SelectInst>(By) || (By->getParent() == L.getHeader() && isa<PHINode>(By)))
        return false;
      Handed.insert(By);
    }
  return true;
}

std::pair<uint32_t, StringRef> classifyPhi(PHINode &Phi, const Loop &L, const FunctionShape &In) {
  if (In.SE.isSCEVable(Phi.getType())) {
    auto *Evolution = dyn_cast<SCEVAddRecExpr>(In.SE.getSCEV(&Phi));
    if (Evolution && Evolution->getLoop() == &L && Evolution->isAffine())
      return {TK_PHI_INDUCTION, ""};
  }
  if (none_of(Phi.users(), [&](const User *U) { return L.contains(cast<Instruction>(U)); }))
    return {TK_PHI_LAST_VALUE, ""};
  StringRef Operator = Accumulation(&L, In).ofPhi(Phi);
  if (Operator.empty())
    Operator = logicalOperator(Phi, L);
  if (Operator.empty())
    Operator = positionOperator(Phi, L, In);
  if (Operator.empty())
    Operator = bestElementOperator(Phi, L, In);
  if (!Operator.empty())
    return {TK_PHI_REDUCTION, Operator};
  return {uint32_t(isOnlyHandedOn(Phi, L) ? TK_PHI_LAST_VALUE : TK_PHI_RECURRENCE), ""};
}

std::string conditionalStep(PHINode &Phi, const Loop &L) {
  SmallPtrSet<Value *, 8> Seen = {&Phi};
  SmallVector<Value *, 8> Open;
  for (BasicBlock *Latch : predecessors(Phi.getParent()))
    if (L.contains(Latch))
      Open.push_back(Phi.getIncomingValueForBlock(Latch));
  std::optional<int64_t> Step;
  const DataLayout &DL = Phi.getModule()->getDataLayout();
  bool IsKept = false;
  while (!Open.empty()) {
    Value *V = Open.pop_back_val();
    IsKept |= V == &Phi;
    if (!Seen.insert(V).second)
      continue;
    auto *I = dyn_cast<Instruction>(V);
    if (!I || !L.contains(I))
      return "";
    APInt By(Phi.getType()->isPointerTy() ? DL.getIndexTypeSizeInBits(Phi.getType()) : 64, 0);
    auto *Element = dyn_cast<GetElementPtrInst>(I);
    const APInt *Added = nullptr;
    if (isa<PHINode>(I)) {
      Open.append(I->op_begin(), I->op_end());
    } else if (auto *Select = dyn_cast<SelectInst>(I)) {
      Open.append({Select->getTrueValue(), Select->getFalseValue()});
    } else if (Element && I->getOperand(0) == &Phi && Element->accumulateConstantOffset(DL, By)) {
      if (Step.value_or(By.getSExtValue()) != By.getSExtValue())
        return "";
      Step = By.getSExtValue();
    } else if (match(I, m_Add(m_Specific(&Phi), m_APInt(Added))) && Added->getBitWidth() <= 64) {
      if (Step.value_or(Added->getSExtValue()) != Added->getSExtValue())
        return "";
      Step = Added->getSExtValue();
    } else {
      return "";
    }
  }
  return Step && IsKept
             ? (Twine(*Step < 0 ? "" : "+") + Twine(*Step) + (Phi.getType()->isPointerTy() ? " bytes" : "")).str()
             : "";
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

namespace {

/// Writes what accumulates in memory: an update, and the operations and branches that belong to it.
class UpdateRows {
public:
  UpdateRows(const SegmentedFunction &S, const FunctionRows &Rows, Unit &U) : S(S), Rows(Rows), U(U) {}

  void add(const Accumulation &Of, StringRef Operator) {
    const Instruction *First = Of.Loads.empty() ? (const Instruction *)Of.Stores.front() : Of.Loads.front();
    if (any_of(Of.Stores, [&](const StoreInst *Each) { return !Rows.OpsOf.count(Each) || !Known.insert(Each).second; }))
      return;
    std::string By = Operator.str();
    if (Operator == SameValue) {
      std::string Number = Of.numberSetTo();
      if (Number.empty())
        return;
      By += Number;
    }
    Row Update = U.Updates.size();
    U.Updates.push_back({rowOf(*First), rowOf(*Of.Stores.front()), U.string(By)});
    for (const LoadInst *Load : drop_begin(Of.Loads, Of.Loads.empty() ? 0 : 1))
      part(Update, rowOf(*Load), TK_PART_MEMBER, "");
    for (const StoreInst *Store : drop_begin(Of.Stores))
      part(Update, rowOf(*Store), TK_PART_MEMBER, "");
    for (const BranchInst *Branch : Of.Branches)
      part(Update, lastBlock(S, Rows, Branch->getParent()), TK_PART_DECISION, "");
    for (const StoreInst *Store : Of.PositionStores)
      part(Update, rowOf(*Store), TK_PART_POSITION, Operator == "max" ? GreatestElement : LeastElement);
    for (const LoadInst *Load : Of.Loads)
      Known.insert(Load);
  }

  bool isKnown(const Instruction &I) const { return Known.contains(&I); }

private:
  Row rowOf(const Instruction &I) const { return Rows.OpsOf.lookup(&I).first; }
  void part(Row Update, Row Index, uint32_t Kind, StringRef Operator) {
    U.UpdateParts.push_back({Update, Kind, Index, U.string(Operator)});
  }

  const SegmentedFunction &S;
  const FunctionRows &Rows;
  Unit &U;
  SmallPtrSet<const Instruction *, 16> Known;
};

} // namespace

/// Whether a store in a loop stores what no loop around it computes.
static bool isFromOutside(const StoreInst &Store, const LoopInfo &LI) {
  auto *Computed = dyn_cast<Instruction>(Store.getValueOperand());
  return !Computed || !LI.getLoopFor(Computed->getParent());
}

void describeUpdates(const SegmentedFunction &S, const FunctionRows &Rows, const FunctionShape &In, Unit &U) {
  UpdateRows Out(S, Rows, U);
  // Variables that the optimiser keeps in registers, but goes on storing where an iteration changes them.
  for (const Loop *L : In.LI.getLoopsInPreorder())
    for (PHINode *Phi : S.HeaderPhis.lookup(L->getHeader())) {
      Accumulation Of(L, In);
      if (StringRef Operator = Of.ofPhi(*Phi); !Operator.empty() && !Of.Stores.empty())
        Out.add(Of, Operator);
    }
  for (const Operation &Op : S.Ops) {
    const Loop *L = Op.Origin ? In.LI.getLoopFor(Op.Origin->getParent()) : nullptr;
    if (auto *Store = dyn_cast_or_null<StoreInst>(Op.Origin); Store && L && isFromOutside(*Store, In.LI))
      U.Ops[Rows.OpsOf.lookup(Store).first].flags |= TK_OPFLAG_SAME_VALUE;
    if (!Op.Origin)
      continue;
    if (auto *Atomic = dyn_cast<AtomicRMWInst>(Op.Origin)) {
      Row OpRow = Rows.OpsOf.lookup(Atomic).first;
      if (StringRef Operator = atomicOperator(*Atomic); !Operator.empty() && Atomic->use_empty())
        U.Updates.push_back({OpRow, OpRow, U.string(Operator)});
    } else if (auto *Load = dyn_cast<LoadInst>(Op.Origin); Load && Load->isSimple() && !Out.isKnown(*Load)) {
      Accumulation Of(L, In);
      if (StringRef Operator = Of.ofLoad(*Load); !Operator.empty())
        Out.add(Of, Operator);
    }
  }
}

} // namespace tracekit
