// Choices.cpp: what comparisons with an accumulated value decide, and what is chosen along with it.
#include "Accumulation.h"

#include "Leaves.h"
#include "PureCalls.h"

#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace tracekit {

bool Accumulation::followDecisions() {
  for (CmpInst *Compare : Comparisons)
    Decisions.insert(Compare);
  for (size_t K = 0; K < Decisions.size(); ++K)
    for (User *U : Decisions[K]->users())
      if (auto *I = cast<Instruction>(U); !contains(I) || !takeDecision(*I, Decisions[K]))
        return false;
  for (size_t K = 0; K < Branches.size(); ++K)
    if (!lookAtRegion(*Branches[K]))
      return false;
  return true;
}

bool Accumulation::takeDecision(Instruction &I, Value *Decision) {
  if (auto *Branch = dyn_cast<BranchInst>(&I))
    return Branches.insert(Branch), true;
  if (Values.contains(&I)) // of a truth value that is tested itself, grow() has looked at what else is done with it
    return Values.contains(Decision) || (isa<SelectInst>(I) && cast<SelectInst>(I).getCondition() == Decision);
  if (I.getType()->isIntegerTy(1) &&
      (match(&I, m_LogicalAnd()) || match(&I, m_LogicalOr()) || match(&I, m_Not(m_Value())) || isa<FreezeInst>(I)))
    return Decisions.insert(&I), true;
  auto *Select = dyn_cast<SelectInst>(&I);
  return Select && Select->getCondition() == Decision && (Chosen.insert(Select), true);
}

/// The blocks between a branch and where its ways meet again may do nothing but choose.
bool Accumulation::lookAtRegion(BranchInst &Branch) {
  const DomTreeNode *Own = In->PDT.getNode(Branch.getParent());
  BasicBlock *Join = Own && Own->getIDom() ? Own->getIDom()->getBlock() : nullptr;
  if (!Join || !(!L || L->contains(Join)) || Join == header())
    return false;
  SmallPtrSet<BasicBlock *, 8> Region = {Branch.getParent()};
  SmallVector<BasicBlock *, 8> Open(successors(Branch.getParent()));
  while (!Open.empty()) {
    BasicBlock *BB = Open.pop_back_val();
    if (BB == Join || !Region.insert(BB).second)
      continue;
    if ((L && !L->contains(BB)) || In->LI.isLoopHeader(BB) || !lookAtBlock(*BB))
      return false;
    Open.append(succ_begin(BB), succ_end(BB));
  }
  Region.insert(Join);
  for (BasicBlock *BB : Region)
    for (PHINode &Phi : BB->phis())
      if (BB != Branch.getParent() && !Values.contains(&Phi) && !isIndependent(Phi, Region))
        Chosen.insert(&Phi);
  return true;
}

bool Accumulation::lookAtBlock(BasicBlock &BB) {
  for (Instruction &I : BB) {
    auto *Store = dyn_cast<StoreInst>(&I);
    if (Store && Store->isSimple())
      Stores.contains(Store) || ChosenStores.insert(Store);
    else if (I.mayHaveSideEffects() && !callsLeaf(I) && !isPureCall(I) && !I.isDebugOrPseudoInst())
      return false;
  }
  return true;
}

/// Whether a phi has the same value whichever way through the region was taken.
bool Accumulation::isIndependent(const PHINode &Phi, const SmallPtrSetImpl<BasicBlock *> &Region) const {
  const Value *Only = nullptr;
  for (unsigned K = 0; K < Phi.getNumIncomingValues(); ++K)
    if (Region.contains(Phi.getIncomingBlock(K))) {
      if (Only && Only != Phi.getIncomingValue(K))
        return false;
      Only = Phi.getIncomingValue(K);
    }
  return true;
}

/// What a truth value's being true or false says of comparisons.
void Accumulation::implied(Value *Decision, bool Outcome, Facts &Known) const {
  Value *A = nullptr, *B = nullptr;
  if (!Decisions.contains(Decision))
    return;
  if (auto *Compare = dyn_cast<CmpInst>(Decision)) {
    Known.push_back({Compare, Outcome});
  } else if (match(Decision, m_Not(m_Value(A)))) {
    implied(A, !Outcome, Known);
  } else if (auto *Freeze = dyn_cast<FreezeInst>(Decision)) {
    implied(Freeze->getOperand(0), Outcome, Known);
  } else if (Outcome ? match(Decision, m_LogicalAnd(m_Value(A), m_Value(B)))
                     : match(Decision, m_LogicalOr(m_Value(A), m_Value(B)))) {
    implied(A, Outcome, Known);
    implied(B, Outcome, Known);
  }
}

Accumulation::Facts Accumulation::factsAt(const Use &U) const {
  Facts Known;
  for (BranchInst *Branch : Branches)
    for (unsigned Way = 0; Way < 2 && Branch->getSuccessor(0) != Branch->getSuccessor(1); ++Way)
      if (In->DT.dominates(BasicBlockEdge(Branch->getParent(), Branch->getSuccessor(Way)), U))
        implied(Branch->getCondition(), Way == 0, Known);
  return Known;
}

Accumulation::Facts Accumulation::factsIn(const BasicBlock &BB) const {
  Facts Known;
  for (BranchInst *Branch : Branches)
    for (unsigned Way = 0; Way < 2 && Branch->getSuccessor(0) != Branch->getSuccessor(1); ++Way)
      if (In->DT.dominates(BasicBlockEdge(Branch->getParent(), Branch->getSuccessor(Way)), &BB))
        implied(Branch->getCondition(), Way == 0, Known);
  return Known;
}

/// An accumulated value without conversions; loads of the variable are one.
Value *Accumulation::withoutCasts(Value *V) const {
  while (Values.contains(V) && isa<CastInst>(V))
    V = cast<CastInst>(V)->getOperand(0);
  return Values.contains(V) && isRoot(V) ? Root : V;
}

/// "max" if a fact says that `New` is greater than the accumulated value that it takes the place of, "min" if smaller.
StringRef Accumulation::direction(const Fact &Known, Value *New, ArrayRef<Value *> Kept) const {
  Value *Left = Known.Compare->getOperand(0), *Right = Known.Compare->getOperand(1);
  CmpInst::Predicate Is = Known.Outcome ? Known.Compare->getPredicate() : Known.Compare->getInversePredicate();
  if (Values.contains(Left) == Values.contains(Right))
    return "";
  if (Values.contains(Left)) {
    std::swap(Left, Right);
    Is = CmpInst::getSwappedPredicate(Is);
  }
  if (!all_of(Kept, [&](Value *V) { return Equality::areTwins(withoutCasts(V), withoutCasts(Right), In->Sums); }))
    return "";
  auto *CastOfLeft = dyn_cast<CastInst>(Left), *CastOfRight = dyn_cast<CastInst>(Right);
  auto *Rounded = dyn_cast<FPTruncInst>(New);
  bool AreEqual = Same.equal(Left, New) || (Rounded && Same.equal(Left, Rounded->getOperand(0))) ||
                  (CastOfLeft && CastOfRight && CastOfLeft->getOpcode() == CastOfRight->getOpcode() &&
                   !isa<TruncInst>(CastOfLeft) && Same.equal(CastOfLeft->getOperand(0), New));
  if (!AreEqual)
    return "";
  switch (Is) {
  case CmpInst::ICMP_SGT:
  case CmpInst::ICMP_SGE:
  case CmpInst::ICMP_UGT:
  case CmpInst::ICMP_UGE:
  case CmpInst::FCMP_OGT:
  case CmpInst::FCMP_OGE:
  case CmpInst::FCMP_UGT: // what is no number makes no order
  case CmpInst::FCMP_UGE:
    return "max";
  case CmpInst::ICMP_SLT:
  case CmpInst::ICMP_SLE:
  case CmpInst::ICMP_ULT:
  case CmpInst::ICMP_ULE:
  case CmpInst::FCMP_OLT:
  case CmpInst::FCMP_OLE:
  case CmpInst::FCMP_ULT:
  case CmpInst::FCMP_ULE:
    return "min";
  default:
    return "";
  }
}

// -- what is chosen by the same decisions ---------------------------------------------------------

/// Whether values chosen by the same decisions are handed on like the extreme itself: kept or replaced together.
bool Accumulation::positionsFit() {
  for (StoreInst *Store : PositionStores) {
    bool IsTaken = any_of(Stores, [&](StoreInst *Key) { return Key->getParent() == Store->getParent(); });
    if (!IsTaken || (!L && !isa<GlobalVariable>(Store->getPointerOperand())) ||
        !In->SE.isSCEVable(Store->getPointerOperandType()) ||
        (L && !In->SE.isLoopInvariant(In->SE.getSCEV(Store->getPointerOperand()), L)))
      return false;
  }
  if (Chosen.empty())
    return true;
  if (!L || !isa<PHINode>(Root)) // positions are phis of the header: they go with one that is
    return false;
  SmallPtrSet<Value *, 8> Covered;
  for (PHINode &Phi : L->getHeader()->phis()) {
    Chain Handed = chainOf(Phi);
    if (isRoot(&Phi) || none_of(Handed, [&](Value *V) { return Chosen.contains(cast<Instruction>(V)); }))
      continue;
    if (!goesWithTheKey(Phi, Handed))
      return false;
    Covered.insert(Handed.begin(), Handed.end());
    Positions.insert(&Phi);
  }
  return all_of(Chosen, [&](Instruction *I) { return Covered.contains(I); });
}

/// What hands on the value of a header's phi inside the loop, itself first; nothing if it is used for anything else.
Accumulation::Chain Accumulation::chainOf(PHINode &Phi) const {
  Chain Handed;
  Handed.insert(&Phi);
  for (size_t K = 0; K < Handed.size(); ++K)
    for (User *U : Handed[K]->users()) {
      auto *I = cast<Instruction>(U);
      if (!contains(I) || I == &Phi)
        continue;
      if (!isa<SelectInst>(I) && !(isa<PHINode>(I) && I->getParent() != header()))
        return {};
      Handed.insert(I);
    }
  return Handed;
}

/// Whether each value of a position's chain is kept, replaced and handed on where a value of the extreme is: all pairs
/// that could be such are dropped until the rest is of pairs whose own operands are pairs, too.
bool Accumulation::goesWithTheKey(PHINode &Position, const Chain &Handed) const {
  Pairs Fitting;
  Fitting.insert({&Position, Root});
  for (Value *Of : Handed)
    for (Value *Key : Values)
      if (Of != &Position && Key != Root)
        Fitting.insert({Of, Key});
  bool Changes = true;
  while (Changes)
    Changes = Fitting.remove_if([&](const Pair &Each) {
      return Each.first != &Position && !choosesAsTheKey(*cast<Instruction>(Each.first), Each.second, Handed, Fitting);
    });
  auto *Key = cast<PHINode>(Root);
  return all_of(Position.blocks(), [&](BasicBlock *Before) {
    return !L->contains(Before) ||
           isPair(Position.getIncomingValueForBlock(Before), Key->getIncomingValueForBlock(Before), Handed, Fitting);
  });
}

/// Whether both values are new ones, or both are handed on and known to go together.
bool Accumulation::isPair(Value *Of, Value *Key, const Chain &Handed, const Pairs &Fitting) const {
  if (!Handed.contains(Of) || !Values.contains(Key))
    return Handed.contains(Of) == Values.contains(Key);
  return Fitting.contains({Of, withoutCasts(Key)});
}

/// Whether a phi or selection takes a new value exactly where the extreme's own `Key` does.
bool Accumulation::choosesAsTheKey(Instruction &I, Value *Key, const Chain &Handed, const Pairs &Fitting) const {
  auto *Select = dyn_cast<SelectInst>(&I);
  auto *Phi = dyn_cast<PHINode>(&I);
  if (auto *Other = dyn_cast<SelectInst>(Key))
    return Select && Other->getCondition() == Select->getCondition() &&
           isPair(Select->getTrueValue(), Other->getTrueValue(), Handed, Fitting) &&
           isPair(Select->getFalseValue(), Other->getFalseValue(), Handed, Fitting);
  if (auto *Other = dyn_cast<PHINode>(Key))
    return Phi && Other->getParent() == Phi->getParent() && isMerge(Other) &&
           all_of(Other->blocks(), [&](BasicBlock *Before) {
             return isPair(Phi->getIncomingValueForBlock(Before), Other->getIncomingValueForBlock(Before), Handed,
                           Fitting);
           });
  // The extreme itself may be an instruction of its own by now, beside a comparison of the same two values.
  auto *Step = dyn_cast<IntrinsicInst>(Key);
  if (!Step || !Select || !Steps.contains(Step) || !isa<CmpInst>(Select->getCondition()))
    return false;
  Value *Own = Step->getArgOperand(Values.contains(Step->getArgOperand(0)) ? 0 : 1);
  Value *New = Step->getArgOperand(Own == Step->getArgOperand(0) ? 1 : 0);
  for (bool Way : {true, false}) {
    Facts Known;
    implied(Select->getCondition(), Way, Known);
    Value *Taken = Way ? Select->getTrueValue() : Select->getFalseValue();
    Value *Kept = Way ? Select->getFalseValue() : Select->getTrueValue();
    if (!Handed.contains(Taken) && isPair(Kept, Own, Handed, Fitting) && Known.size() == 1 &&
        direction(Known.front(), New, Own) == Operator)
      return true;
  }
  return false;
}

} // namespace tracekit
