// BestElement.cpp: where the greatest or least element stands, if only that is kept: `if (a[i] > a[at]) at = i`.
#include "Loops.h"

#include "Leaves.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ValueTracking.h"

using namespace llvm;

namespace tracekit {

namespace {

/// Looks at one phi of a loop's header that holds a position.
class BestElement {
public:
  BestElement(PHINode &Phi, const Loop &L, const FunctionShape &In) : Phi(Phi), L(L), In(In) {}

  /// "argmax" or "argmin": each iteration keeps the position, or takes the one new position, by a comparison of the
  /// elements at both, and does nothing else with it. "" otherwise.
  StringRef find() {
    const BasicBlock *Latch = L.getLoopLatch();
    if (!Phi.getType()->isIntegerTy() || !Latch || !collectKept(Phi.getIncomingValueForBlock(Latch)) || !New)
      return "";
    for (Instruction *Choice : Choices)
      if (StringRef Operator = decidedBy(*Choice); Operator.empty() || (!Found.empty() && Operator != Found))
        return "";
      else
        Found = Operator;
    return !Loads.empty() && isUsedForNothingElse() && elementsStay() ? Found : "";
  }

private:
  /// Follows what the next iteration has to phis and selections, each of the position itself and of one other value.
  bool collectKept(Value *V) {
    auto *I = dyn_cast<Instruction>(V);
    if (V == &Phi || is_contained(Choices, V))
      return true;
    bool IsChoice =
        I && L.contains(I) && (isa<SelectInst>(I) || (isa<PHINode>(I) && !In.LI.isLoopHeader(I->getParent())));
    if (!IsChoice) {
      if (New && New != V)
        return false;
      New = V;
      return true;
    }
    Choices.push_back(I);
    if (auto *Select = dyn_cast<SelectInst>(I))
      return collectKept(Select->getTrueValue()) && collectKept(Select->getFalseValue());
    return all_of(cast<PHINode>(I)->incoming_values(), [&](Value *Of) { return collectKept(Of); });
  }

  /// The order by which a phi or selection takes the new position.
  StringRef decidedBy(Instruction &Choice) {
    if (auto *Select = dyn_cast<SelectInst>(&Choice))
      return Select->getTrueValue() == Select->getFalseValue() ? StringRef()
             : Select->getTrueValue() == New                   ? orderOf(Select->getCondition(), true)
             : Select->getFalseValue() == New                  ? orderOf(Select->getCondition(), false)
                                                               : StringRef();
    auto &Merge = cast<PHINode>(Choice);
    StringRef Order;
    for (unsigned K = 0; K < Merge.getNumIncomingValues(); ++K)
      if (Merge.getIncomingValue(K) == New) {
        StringRef Here = orderOnTheWay(*Merge.getIncomingBlock(K), *Merge.getParent());
        if (Here.empty() || (!Order.empty() && Here != Order))
          return "";
        Order = Here;
      }
    return Order.empty() ? Found : Order; // one that only hands on what another one chose
  }

  /// The order that the last branch before an edge asks for.
  StringRef orderOnTheWay(BasicBlock &From, BasicBlock &To) {
    BasicBlock *At = &From, *Next = &To;
    for (unsigned Steps = 0; Steps < 8 && At && L.contains(At); ++Steps) {
      if (auto *Branch = dyn_cast<BranchInst>(At->getTerminator()); Branch && Branch->isConditional()) {
        if (Branch->getSuccessor(0) == Branch->getSuccessor(1))
          return "";
        return orderOf(Branch->getCondition(), Branch->getSuccessor(0) == Next);
      }
      Next = At;
      At = At->getSinglePredecessor();
    }
    return "";
  }

  /// What a comparison's outcome says of the new element and the one that is kept.
  StringRef orderOf(Value *Condition, bool Outcome) {
    auto *Compare = dyn_cast<CmpInst>(Condition);
    if (!Compare || !Compare->isRelational() || !L.contains(Compare))
      return "";
    bool NewIsLeft = isElement(Compare->getOperand(0), New) && isElement(Compare->getOperand(1), &Phi);
    bool NewIsRight = isElement(Compare->getOperand(1), New) && isElement(Compare->getOperand(0), &Phi);
    if (NewIsLeft == NewIsRight)
      return "";
    Value *One = Compare->getOperand(NewIsLeft ? 0 : 1), *Other = Compare->getOperand(NewIsLeft ? 1 : 0);
    if (!areAlike(One, Other, 0))
      return "";
    CmpInst::Predicate P = Compare->getPredicate();
    bool IsGreater = P == CmpInst::FCMP_OGT || P == CmpInst::FCMP_OGE || P == CmpInst::FCMP_UGT ||
                     P == CmpInst::FCMP_UGE || ICmpInst::isGT(P) || ICmpInst::isGE(P);
    Comparisons.insert(Compare);
    return (IsGreater == NewIsLeft) == Outcome ? GreatestElement : LeastElement;
  }

  /// Whether a value is computed from a position: it is one, or the load of an element there.
  bool isElement(Value *V, const Value *Position) const {
    return dependsOn(V, Position, 0) && !dependsOn(V, Position == &Phi ? New : &Phi, 0);
  }

  bool dependsOn(const Value *V, const Value *Position, unsigned Depth) const {
    if (strip(V) == strip(Position))
      return true;
    auto *I = dyn_cast<Instruction>(V);
    if (!I || !L.contains(I) || isa<PHINode>(I) || Depth == DeepestElement)
      return false;
    return any_of(I->operands(), [&](const Value *Of) { return dependsOn(Of, Position, Depth + 1); });
  }

  /// Whether two values are computed in the same way, one from the new position and the other from the old one.
  bool areAlike(Value *OfNew, Value *OfOld, unsigned Depth) {
    if (strip(OfNew) == strip(New) && strip(OfOld) == &Phi)
      return true;
    if (OfNew == OfOld)
      return L.isLoopInvariant(OfNew);
    auto *A = dyn_cast<Instruction>(strip(OfNew)), *B = dyn_cast<Instruction>(strip(OfOld));
    if (!A || !B || Depth == DeepestElement || !A->isSameOperationAs(B) || A->getNumOperands() != B->getNumOperands())
      return false;
    auto *Load = dyn_cast<LoadInst>(A);
    if (Load)
      Loads.push_back(Load);
    if (Load ? !Load->isSimple() || !cast<LoadInst>(B)->isSimple() : !isa<GetElementPtrInst, BinaryOperator>(A))
      return false;
    if (!L.contains(B))
      return false;
    Inside.insert(B);
    for (unsigned K = 0; K < A->getNumOperands(); ++K)
      if (!areAlike(A->getOperand(K), B->getOperand(K), Depth + 1))
        return false;
    return true;
  }

  /// Every use of the position in the loop is one of its choices, or leads to the comparison alone.
  bool isUsedForNothingElse() const {
    SmallVector<const Instruction *, 8> Open = {&Phi};
    Open.append(Choices.begin(), Choices.end());
    SmallPtrSet<const Instruction *, 16> Seen(Open.begin(), Open.end());
    while (!Open.empty())
      for (const User *U : Open.pop_back_val()->users()) {
        auto *By = cast<Instruction>(U);
        bool IsKnown = By == &Phi || is_contained(Choices, By) || !L.contains(By);
        if (IsKnown || !Seen.insert(By).second)
          continue;
        if (auto *Compare = dyn_cast<CmpInst>(By); Compare ? !decidesNothingElse(*Compare) : !isPartOfElement(*By))
          return false;
        if (!isa<CmpInst>(By))
          Open.push_back(By);
      }
    auto *Position = dyn_cast<Instruction>(New);
    return !Position || !Seen.contains(Position);
  }

  /// Whether nothing in the loop may change the elements, or the pointers to them: each has one value in all
  /// iterations.
  bool elementsStay() const {
    for (const BasicBlock *BB : L.blocks())
      for (const Instruction &I : *BB) {
        if (!I.mayWriteToMemory() || I.isDebugOrPseudoInst() || I.isLifetimeStartOrEnd() || callsLeaf(I))
          continue;
        auto *Store = dyn_cast<StoreInst>(&I);
        const Value *To = Store ? getUnderlyingObject(Store->getPointerOperand()) : nullptr;
        if (!To || !isa<AllocaInst, GlobalVariable>(To) || any_of(Loads, [&](const LoadInst *Load) {
              const Value *From = getUnderlyingObject(Load->getPointerOperand());
              return From == To || !isa<AllocaInst, GlobalVariable>(From);
            }))
          return false;
      }
    return true;
  }

  bool isPartOfElement(const Instruction &I) const { return Inside.contains(&I) || isa<CastInst>(I); }

  /// A comparison may decide what is chosen, by branches whose ways do nothing but meet again.
  bool decidesNothingElse(const CmpInst &Compare) const {
    if (!Comparisons.contains(&Compare))
      return false;
    for (const User *U : Compare.users()) {
      if (is_contained(Choices, U))
        continue;
      auto *Branch = dyn_cast<BranchInst>(U);
      if (!Branch || !onlyLeadsToChoice(*Branch))
        return false;
    }
    return true;
  }

  bool onlyLeadsToChoice(const BranchInst &Branch) const {
    const DomTreeNode *Own = In.PDT.getNode(Branch.getParent());
    const BasicBlock *Join = Own && Own->getIDom() ? Own->getIDom()->getBlock() : nullptr;
    if (!Join || !L.contains(Join))
      return false;
    for (const BasicBlock *Next : successors(&Branch))
      for (unsigned Steps = 0; Next != Join; ++Steps) {
        bool IsEmpty = all_of(*Next, [](const Instruction &I) {
          return I.isTerminator() || I.isDebugOrPseudoInst() || (isa<CastInst>(I) && !I.mayHaveSideEffects());
        });
        if (!IsEmpty || !Next->getSingleSuccessor() || !Next->getSinglePredecessor() || Steps == 4)
          return false;
        Next = Next->getSingleSuccessor();
      }
    return all_of(Join->phis(),
                  [&](const PHINode &Each) { return is_contained(Choices, &Each) || Each.hasConstantOrUndefValue(); });
  }

  /// Without what makes an index of a position: no array has so many elements that 32 bits lose one.
  static const Value *strip(const Value *V) {
    while (auto *Cast = dyn_cast<CastInst>(V)) {
      if (!isa<SExtInst, ZExtInst, TruncInst>(Cast) || Cast->getType()->getScalarSizeInBits() < 32)
        break;
      V = Cast->getOperand(0);
    }
    return V;
  }
  static Value *strip(Value *V) { return const_cast<Value *>(strip(const_cast<const Value *>(V))); }

  static constexpr unsigned DeepestElement = 6;

  PHINode &Phi;
  const Loop &L;
  const FunctionShape &In;
  Value *New = nullptr;
  SmallVector<Instruction *, 4> Choices;
  SmallPtrSet<const CmpInst *, 2> Comparisons;
  SmallVector<LoadInst *, 4> Loads;           // of the elements, and of what leads to them
  SmallPtrSet<const Instruction *, 8> Inside; // what computes the old element
  StringRef Found;
};

} // namespace

StringRef bestElementOperator(PHINode &Phi, const Loop &L, const FunctionShape &In) {
  return BestElement(Phi, L, In).find();
}

} // namespace tracekit
