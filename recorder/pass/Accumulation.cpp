// Accumulation.cpp: see Accumulation.h.
#include "Accumulation.h"

#include "Leaves.h"
#include "Loops.h"

#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace tracekit {

/// The other loads of a variable are looked for in so many blocks.
static constexpr unsigned MostBlocks = 16;

StringRef Accumulation::ofPhi(PHINode &Phi) {
  Root = &Phi;
  Home = home();
  Values.insert(&Phi);
  if (!grow())
    return "";
  for (BasicBlock *Before : Phi.blocks())
    if (L->contains(Before) && !Values.contains(Phi.getIncomingValueForBlock(Before)))
      return "";
  return isWellFormed() ? Operator : "";
}

StringRef Accumulation::ofLoad(LoadInst &Load) {
  auto Begin = [&] {
    *this = Accumulation(L, *In);
    Root = &Load;
    Home = Load.getPointerOperand();
    Values.insert(&Load);
    Loads.push_back(&Load);
  };
  Begin();
  if (isCompared(Load))
    findLoadsBehind(Load);
  if (grow() && isWellFormed())
    return Stores.empty() ? "" : Operator;
  bool IsMerged = any_of(Values, [](const Value *V) { return isa<PHINode>(V); });
  if (!IsMerged || !Comparisons.empty())
    return "";
  Begin();
  findLoadsAround(Load);
  return grow() && Comparisons.empty() && isWellFormed() && !Stores.empty() ? Operator : "";
}

bool Accumulation::isCompared(const Value &V) const {
  return any_of(V.users(), [&](const User *U) { return isa<CmpInst>(U) || (isa<CastInst>(U) && isCompared(*U)); });
}

/// Unoptimised code loads what it has compared once more.
void Accumulation::findLoadsBehind(LoadInst &Load) {
  // They stand near.
  SmallVector<BasicBlock *, 8> Blocks = {Load.getParent()};
  for (unsigned K = 0; K < Blocks.size() && K < MostBlocks; ++K)
    for (BasicBlock *Next : successors(Blocks[K]))
      if (In->DT.dominates(Load.getParent(), Next) && !is_contained(Blocks, Next))
        Blocks.push_back(Next);
  for (BasicBlock *BB : Blocks)
    for (Instruction &I : *BB)
      if (auto *Again = dyn_cast<LoadInst>(&I);
          Again && Again != &Load && Again->isSimple() && Again->getType() == Load.getType() &&
          In->LI.getLoopFor(BB) == L && isHome(Again->getPointerOperand()) && Same.isUntouched(Home, Load, *Again))
        Values.insert(Again), Loads.push_back(Again);
}

/// Of two ways through an iteration, each may load the variable, and what comes of it be stored where they meet.
void Accumulation::findLoadsAround(LoadInst &Load) {
  for (User *U : Load.getPointerOperand()->users())
    if (auto *Again = dyn_cast<LoadInst>(U); Again && Again != &Load && Again->isSimple() &&
                                             Again->getType() == Load.getType() &&
                                             In->LI.getLoopFor(Again->getParent()) == L)
      Values.insert(Again), Loads.push_back(Again);
}

// -- what is done with accumulated values -------------------------------------------------------

bool Accumulation::grow() {
  for (size_t K = 0; K < Values.size(); ++K)
    for (User *U : Values[K]->users()) {
      auto *I = cast<Instruction>(U);
      if (!contains(I) ? !isa<PHINode>(Root) : !take(*I, Values[K]))
        return false;
    }
  return followDecisions();
}

bool Accumulation::take(Instruction &I, Value *From) {
  if (auto *Phi = dyn_cast<PHINode>(&I)) {
    Values.insert(Phi);
    return Phi == Root || Phi->getParent() != header();
  }
  if (auto *Select = dyn_cast<SelectInst>(&I))
    return takeSelect(*Select, From);
  if (auto *Compare = dyn_cast<CmpInst>(&I)) {
    if (isa<ICmpInst>(Compare) && Compare->getPredicate() == CmpInst::ICMP_NE &&
        match(Compare->getOperand(1), m_Zero()))
      return TestsTruth = Values.insert(Compare) || TestsTruth;
    return Compare->isRelational() && (Comparisons.insert(Compare), true);
  }
  if (auto *Cast = dyn_cast<CastInst>(&I))
    return takeCast(*Cast);
  if (auto *Store = dyn_cast<StoreInst>(&I))
    return Store->getValueOperand() == From && takeStore(*Store);
  StringRef Applied = associativeOperator(I, From);
  if (!agree(Applied))
    return false;
  Values.insert(&I);
  Steps.insert(&I);
  return true;
}

bool Accumulation::agree(StringRef Applied) {
  if (Applied.empty() || (!Operator.empty() && Operator != Applied))
    return false;
  Operator = Applied;
  return true;
}

/// Nothing may be lost on the way but what rounding loses.
bool Accumulation::takeCast(CastInst &Cast) {
  Type *To = Cast.getType(), *Of = Root->getType();
  bool ToTruth = To->isIntegerTy(1);
  if (!isa<ZExtInst, SExtInst, TruncInst, FPExtInst, FPTruncInst, BitCastInst>(Cast) ||
      (To->getScalarSizeInBits() < Of->getScalarSizeInBits() && !ToTruth))
    return false;
  IsTruth |= ToTruth && !Of->isIntegerTy(1);
  Values.insert(&Cast);
  return true;
}

bool Accumulation::takeStore(StoreInst &Store) {
  if (!Store.isSimple() || !Home || !isHome(Store.getPointerOperand()) ||
      Store.getValueOperand()->getType() != Root->getType())
    return false;
  Stores.insert(&Store);
  return isa<PHINode>(Root) || In->LI.getLoopFor(Store.getParent()) == L;
}

bool Accumulation::takeSelect(SelectInst &Select, Value *From) {
  if (Select.getCondition() == From)
    return false;
  Values.insert(&Select);
  if (StringRef Applied = associativeOperator(Select, From); !Applied.empty()) {
    Steps.insert(&Select);
    return agree(Applied);
  }
  return true;
}

/// Where a variable that the optimiser keeps in a register lies otherwise: where its first value is loaded.
Value *Accumulation::home() const {
  Value *V = Root;
  for (const Loop *Around = L; Around; Around = Around->getParentLoop()) {
    auto *Phi = dyn_cast<PHINode>(V);
    BasicBlock *Before = Around->getLoopPredecessor();
    if (!Phi || Phi->getParent() != Around->getHeader() || !Before)
      break;
    V = Phi->getIncomingValueForBlock(Before);
  }
  auto *Load = dyn_cast<LoadInst>(V);
  return Load && Load->isSimple() && !L->contains(Load) ? Load->getPointerOperand() : nullptr;
}

bool Accumulation::isWrittenBack() const {
  if (!Stores.empty())
    return true;
  SmallSetVector<Value *, 8> Reached(Values.begin(), Values.end());
  for (size_t K = 0; K < Reached.size(); ++K)
    for (User *U : Reached[K]->users())
      if (auto *Store = dyn_cast<StoreInst>(U); Store && Store->getPointerOperand() == Home)
        return true;
      else if (auto *Phi = dyn_cast<PHINode>(U); Phi && !contains(Phi))
        Reached.insert(Phi);
  return false;
}

bool Accumulation::isHome(Value *Pointer) const {
  if (!Home)
    return false;
  if (Pointer == Home || Same.equal(Pointer, Home))
    return true;
  return In->SE.isSCEVable(Home->getType()) && In->SE.isSCEVable(Pointer->getType()) &&
         In->SE.getSCEV(Pointer) == In->SE.getSCEV(Home);
}

// -- what comparisons with them decide ------------------------------------------------------------

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
  if (Values.contains(&I))
    return isa<SelectInst>(I) && cast<SelectInst>(I).getCondition() == Decision;
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
    if ((L && !L->contains(BB)) || In->LI.isLoopHeader(BB) || !lookAtBlock(*BB, Branch))
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

bool Accumulation::lookAtBlock(BasicBlock &BB, const BranchInst &) {
  for (Instruction &I : BB) {
    auto *Store = dyn_cast<StoreInst>(&I);
    if (Store && Store->isSimple())
      Stores.contains(Store) || ChosenStores.insert(Store);
    else if (I.mayHaveSideEffects() && !callsLeaf(I) && !I.isDebugOrPseudoInst())
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
  if (!all_of(Kept, [&](Value *V) { return withoutCasts(V) == withoutCasts(Right); }))
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

// -- whether it all comes to one operator ---------------------------------------------------------

bool Accumulation::isMerge(const Value *V) const {
  return !isRoot(V) && isa<PHINode, SelectInst>(V) && !Steps.contains(const_cast<Instruction *>(cast<Instruction>(V)));
}

/// A new value takes the place of those that are kept otherwise: it is greater, or smaller, or always the same one.
bool Accumulation::takeNew(Value *New, const Facts &Known, ArrayRef<Value *> Kept) {
  for (const Fact &Each : Known)
    if (StringRef Applied = direction(Each, New, Kept); !Applied.empty())
      return agree(Applied);
  auto *C = dyn_cast<Constant>(New);
  if (!C || isa<UndefValue>(C) || !Comparisons.empty() || (SetTo && SetTo != C))
    return false;
  SetTo = C;
  return true;
}

bool Accumulation::isWellFormedPhi(PHINode &Phi) {
  SmallVector<Value *, 4> Kept;
  for (Value *From : Phi.incoming_values())
    if (Values.contains(From))
      Kept.push_back(From);
  for (Use &U : Phi.incoming_values())
    if (!Values.contains(U) && (In->LI.isLoopHeader(Phi.getParent()) || !takeNew(U, factsAt(U), Kept)))
      return false;
  return true;
}

bool Accumulation::isWellFormedSelect(SelectInst &Select) {
  for (bool Way : {true, false}) {
    Value *New = Way ? Select.getTrueValue() : Select.getFalseValue();
    Value *Kept = Way ? Select.getFalseValue() : Select.getTrueValue();
    if (Values.contains(New))
      continue;
    Facts Known;
    implied(Select.getCondition(), Way, Known);
    if (!takeNew(New, Known, Kept))
      return false;
  }
  return true;
}

/// Whether a store that a decision leads to stores what was compared into the variable.
bool Accumulation::isChosenStore(StoreInst &Store) {
  Value *New = Store.getValueOperand(), *Current = Root;
  if (Values.contains(New) || !isHome(Store.getPointerOperand()) || New->getType() != Root->getType())
    return false;
  if (isa<LoadInst>(Root) && !Same.isUntouched(Home, *Root, Store))
    return false;
  for (const Fact &Known : factsIn(*Store.getParent()))
    if (StringRef Applied =
            direction(Known, New, isa<LoadInst>(Root) ? ArrayRef<Value *>(Current) : ArrayRef<Value *>());
        !Applied.empty() && agree(Applied)) {
      Stores.insert(&Store);
      return true;
    }
  return false;
}

bool Accumulation::isWellFormed() {
  for (size_t K = 0; K < Values.size(); ++K) {
    auto *I = cast<Instruction>(Values[K]);
    if (isRoot(I) || isa<CastInst, CmpInst>(I))
      continue;
    bool Fits = true;
    if (Steps.contains(I))
      Fits = count_if(I->operands(), [&](Value *Of) { return Values.contains(Of); }) == 1;
    else if (auto *Phi = dyn_cast<PHINode>(I))
      Fits = isWellFormedPhi(*Phi);
    else
      Fits = isWellFormedSelect(*cast<SelectInst>(I));
    if (!Fits)
      return false;
  }
  for (StoreInst *Store : ChosenStores)
    if (!Stores.contains(Store) && !isChosenStore(*Store))
      PositionStores.insert(Store);
  bool IsExtreme = Operator == "min" || Operator == "max";
  if (SetTo) {
    if (!Operator.empty() || !Steps.empty())
      return false;
    Operator = setsTo(*SetTo);
  }
  return (Comparisons.empty() || IsExtreme) && castsFit() && positionsFit();
}

/// Narrow integers may be widened and narrowed again by operators that look at each bit, or carry upwards only; truth
/// values are tested by none but `|` and `&`.
bool Accumulation::castsFit() const {
  bool IsExtreme = Operator == "min" || Operator == "max";
  for (Value *V : Values) {
    if (auto *Cast = dyn_cast<CastInst>(V); Cast && Cast->getType()->isIntegerTy() && IsExtreme)
      for (User *U : Cast->users())
        if (!isa<CmpInst>(U) || !Comparisons.contains(cast<CmpInst>(U)))
          return false;
    if ((TestsTruth || IsTruth) && isRoot(V) && !V->getType()->isIntegerTy(1))
      for (User *U : V->users())
        if (contains(cast<Instruction>(U)) && !isa<PHINode, SelectInst, StoreInst>(U) &&
            !(isa<TruncInst>(U) && U->getType()->isIntegerTy(1)))
          return false;
  }
  bool IsBitwise = Operator == "|" || Operator == "&";
  return TestsTruth ? IsBitwise : !IsTruth || IsBitwise || Operator == "^";
}

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
  SmallPtrSet<Value *, 8> Covered;
  if (!L)
    return false;
  for (PHINode &Phi : L->getHeader()->phis()) {
    if (&Phi == Root || none_of(Phi.incoming_values(), [&](Value *V) {
          auto *I = dyn_cast<Instruction>(V);
          return I && Chosen.contains(I);
        }))
      continue;
    SmallPtrSet<Value *, 8> Chain = {&Phi};
    SmallVector<Value *, 8> Open = {&Phi};
    while (!Open.empty())
      for (User *U : Open.pop_back_val()->users()) {
        auto *I = cast<Instruction>(U);
        if (!contains(I) || I == &Phi)
          continue;
        if (!Chosen.contains(I))
          return false;
        if (Chain.insert(I).second)
          Open.push_back(I);
      }
    for (Value *V : Chain)
      if (V != &Phi && !choosesAsTheKey(*cast<Instruction>(V), Chain))
        return false;
    Covered.insert(Chain.begin(), Chain.end());
    Positions.insert(&Phi);
  }
  return all_of(Chosen, [&](Instruction *I) { return Covered.contains(I); });
}

/// Whether a phi or selection takes a new value exactly where one of the extreme's own does.
bool Accumulation::choosesAsTheKey(Instruction &I, const SmallPtrSetImpl<Value *> &Chain) const {
  auto *Select = dyn_cast<SelectInst>(&I);
  auto *Phi = dyn_cast<PHINode>(&I);
  for (Value *V : Values) {
    if (auto *Key = dyn_cast<SelectInst>(V);
        Key && Select && Key->getCondition() == Select->getCondition() &&
        Values.contains(Key->getTrueValue()) == Chain.contains(Select->getTrueValue()) &&
        Values.contains(Key->getFalseValue()) == Chain.contains(Select->getFalseValue()))
      return true;
    if (auto *Key = dyn_cast<PHINode>(V); Key && Phi && Key->getParent() == Phi->getParent() && isMerge(Key)) {
      bool Agree = true;
      for (BasicBlock *Before : Key->blocks())
        Agree &= Values.contains(Key->getIncomingValueForBlock(Before)) ==
                 Chain.contains(Phi->getIncomingValueForBlock(Before));
      if (Agree)
        return true;
    }
    // The extreme itself may be an instruction of its own by now, beside a comparison of the same two values.
    if (auto *Step = dyn_cast<IntrinsicInst>(V); Step && Select && Steps.contains(Step)) {
      Value *Own = Step->getArgOperand(Values.contains(Step->getArgOperand(0)) ? 0 : 1);
      Value *New = Step->getArgOperand(Own == Step->getArgOperand(0) ? 1 : 0);
      for (bool Way : {true, false}) {
        Facts Known;
        implied(Select->getCondition(), Way, Known);
        bool TakesNew = !Chain.contains(Way ? Select->getTrueValue() : Select->getFalseValue());
        if (TakesNew && Known.size() == 1 && isa<CmpInst>(Select->getCondition()) &&
            direction(Known.front(), New, Own) == Operator)
          return true;
      }
    }
  }
  return false;
}

/// The operator of a value that iterations leave alone or set to a constant: of truth values, or and and.
StringRef Accumulation::setsTo(const Constant &C) const {
  auto *To = dyn_cast<ConstantInt>(&C);
  if (!To || !(To->isZero() || To->isOne()))
    return SameValue;
  SmallPtrSet<Value *, 8> Seen;
  SmallVector<Value *, 8> Open = {Root};
  while (!Open.empty()) { // is it 0 or 1 at the beginning?
    Value *V = Open.pop_back_val();
    if (!Seen.insert(V).second || V->getType()->isIntegerTy(1))
      continue;
    auto *Constant = dyn_cast<ConstantInt>(V);
    if (auto *Merge = dyn_cast<PHINode>(V))
      Open.append(Merge->op_begin(), Merge->op_end());
    else if (auto *Select = dyn_cast<SelectInst>(V))
      Open.append({Select->getTrueValue(), Select->getFalseValue()});
    else if (auto *Cast = dyn_cast<ZExtInst>(V))
      Open.push_back(Cast->getOperand(0));
    else if (!Constant || Constant->getValue().ugt(1))
      return SameValue;
  }
  return To->isOne() ? "||" : "&&";
}

} // namespace tracekit
