// Accumulation.cpp: see Accumulation.h.
#include "Accumulation.h"
#include "Loops.h"

#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace tracekit {

/// Other accesses of a variable are looked for in so many blocks.
static constexpr unsigned MostBlocksAhead = 16;

/// Whether the source has two variables there, of which one takes what has been accumulated in the other so far.
static bool isOtherVariable(PHINode &Other, PHINode &Phi) {
  const DILocalVariable *OtherName = carriedVariable(Other), *Name = carriedVariable(Phi);
  return OtherName && Name && OtherName != Name;
}

StringRef Accumulation::ofPhi(PHINode &Phi) {
  SmallVector<Value *, 2> Homes = homesOf(Phi);
  SmallVector<PHINode *, 4> Alike;
  if (!Homes.empty())
    for (PHINode &Other : Phi.getParent()->phis())
      if (&Other != &Phi && !isOtherVariable(Other, Phi) && Equality::areTwins(&Other, &Phi, In->Sums))
        Alike.push_back(&Other);
  for (Value *Candidate : Homes) {
    *this = Accumulation(L, *In);
    Home = Candidate;
    if (StringRef Found = grownFrom(Phi, Alike); !Found.empty())
      return Found;
  }
  return "";
}

StringRef Accumulation::grownFrom(PHINode &Phi, ArrayRef<PHINode *> Alike) {
  Root = &Phi;
  Values.insert(&Phi);
  Values.insert(Alike.begin(), Alike.end());
  Twins.insert(Alike.begin(), Alike.end());
  if (!grow())
    return "";
  auto IsHandedOn = [&](const PHINode &Of) {
    return all_of(Of.blocks(), [&](BasicBlock *Before) {
      return !L->contains(Before) || Values.contains(Of.getIncomingValueForBlock(Before));
    });
  };
  if (!IsHandedOn(Phi) || !all_of(Twins, [&](const PHINode *Twin) { return IsHandedOn(*Twin); }))
    return "";
  return isWellFormed() && (Stores.empty() || isAloneInLoopsAround()) ? Operator : "";
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
  for (unsigned K = 0; K < Blocks.size() && K < MostBlocksAhead; ++K)
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
  if (isa<ConstantData>(Load.getPointerOperand())) // null, which the whole module shares
    return;
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
    return isRoot(Phi) || Phi->getParent() != header();
  }
  if (isa<BranchInst>(I) || (isTest(I) && (match(&I, m_LogicalAnd()) || match(&I, m_LogicalOr()))))
    return Decisions.insert(isa<BranchInst>(I) ? From : &I), true;
  if (isTest(I) && match(&I, m_Not(m_Value())))
    return Decisions.insert(&I), true;
  if (auto *Select = dyn_cast<SelectInst>(&I))
    return takeSelect(*Select, From);
  if (auto *Compare = dyn_cast<CmpInst>(&I)) {
    if (isa<ICmpInst>(Compare) && Compare->getPredicate() == CmpInst::ICMP_NE &&
        match(Compare->getOperand(1), m_Zero()) && !isTest(I))
      return TestsTruth = Values.insert(Compare) || TestsTruth;
    return Comparisons.insert(Compare), true;
  }
  if (auto *Cast = dyn_cast<CastInst>(&I))
    return isTest(I) ? (Decisions.insert(Cast), true) : takeCast(*Cast);
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

/// Whether a truth value decides something: what is done with it then is no accumulation.
bool Accumulation::isTest(const Instruction &I) const {
  return I.getType()->isIntegerTy(1) && any_of(I.users(), [&](const User *By) {
           auto *Select = dyn_cast<SelectInst>(By);
           return isa<BranchInst>(By) || match(By, m_Not(m_Value())) || (Select && Select->getCondition() == &I);
         });
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

/// Where a variable that the optimiser keeps in a register may lie otherwise: where its first value is loaded, or has
/// just been stored, if the loop stores there, too. Null, which comes last: nowhere.
SmallVector<Value *, 2> Accumulation::homesOf(PHINode &Root) const {
  Value *V = &Root;
  BasicBlock *Entry = nullptr;
  for (const Loop *Around = L; Around; Around = Around->getParentLoop()) {
    auto *Phi = dyn_cast<PHINode>(V);
    BasicBlock *Before = Around->getLoopPredecessor();
    if (!Phi || Phi->getParent() != Around->getHeader() || !Before)
      break;
    Entry = Before;
    V = Phi->getIncomingValueForBlock(Before);
  }
  SmallVector<Value *, 2> Found;
  auto *Load = dyn_cast<LoadInst>(V);
  if (Load && Load->isSimple() && !L->contains(Load))
    Found.push_back(Load->getPointerOperand());
  const Equality Anywhere(nullptr, In->DT);
  const DomTreeNode *Above = Entry ? In->DT.getNode(Entry) : nullptr; // by other loops, if need be
  for (unsigned K = 0; Above && K < MostBlocksAhead; ++K, Above = Above->getIDom())
    for (Instruction &I : reverse(*Above->getBlock())) {
      auto *Store = dyn_cast<StoreInst>(&I);
      Value *Pointer =
          Store && Store->isSimple() && Store->getValueOperand() == V ? Store->getPointerOperand() : nullptr;
      if (Pointer && isStoredInside(*Pointer) && Anywhere.isUntouched(Pointer, *Store, *Entry->getTerminator()))
        Found.push_back(Pointer);
    }
  Found.push_back(nullptr);
  return Found;
}

/// Whether the loops around, which hand the phi's value on, store nothing else where it lies. Otherwise it is another
/// variable, which happens to begin with the same value.
bool Accumulation::isAloneInLoopsAround() const {
  const Loop *Outermost = L;
  const Value *V = Root;
  while (BasicBlock *Before = Outermost->getLoopPredecessor()) {
    V = cast<PHINode>(V)->getIncomingValueForBlock(Before);
    const Loop *Around = Outermost->getParentLoop();
    if (!Around || !isa<PHINode>(V) || cast<PHINode>(V)->getParent() != Around->getHeader())
      break;
    Outermost = Around;
  }
  for (BasicBlock *BB : Outermost->blocks())
    for (Instruction &I : *BB) {
      auto *Store = dyn_cast<StoreInst>(&I);
      bool IsOther = Store ? Store->getPointerOperand() == Home && !Values.contains(Store->getValueOperand())
                           : isa<CallBase>(I) && Equality::mayChange(I, Home);
      if (IsOther && !L->contains(&I))
        return false;
    }
  return true;
}

bool Accumulation::isStoredInside(const Value &Pointer) const {
  return !isa<ConstantData>(Pointer) && any_of(Pointer.users(), [&](const User *U) {
    auto *Store = dyn_cast<StoreInst>(U);
    return Store && L->contains(Store) && Store->getPointerOperand() == &Pointer;
  });
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

SmallVector<const DILocation *, 4> Accumulation::places() const {
  SmallVector<const DILocation *, 4> Found;
  auto Add = [&](const auto &Of) {
    for (const Instruction *I : Of)
      Found.push_back(I->getDebugLoc().get());
  };
  Add(Steps);
  Add(Comparisons);
  Add(Branches);
  Add(Stores);
  return Found;
}

bool Accumulation::isHome(Value *Pointer) const {
  if (!Home)
    return false;
  if (Pointer == Home || Same.equal(Pointer, Home))
    return true;
  return In->SE.isSCEVable(Home->getType()) && In->SE.isSCEVable(Pointer->getType()) &&
         In->SE.getSCEV(Pointer) == In->SE.getSCEV(Home);
}

// -- whether it all comes to one operator ---------------------------------------------------------

bool Accumulation::isMerge(const Value *V) const {
  return !isRoot(V) && isa<PHINode, SelectInst>(V) && !Steps.contains(const_cast<Instruction *>(cast<Instruction>(V)));
}

/// A constant takes the place of what is kept otherwise, and no other one does in the loop.
///
/// Then the order of iterations does not matter, whatever they compare the variable with to decide that (`if (!x) x =
/// 1`): before the first one that takes it all see the same value, and it is taken if one of them would then.
bool Accumulation::takeConstant(Value *New) {
  auto *C = dyn_cast<Constant>(New);
  if (!C || isa<UndefValue>(C) || (SetTo && SetTo != C))
    return false;
  SetTo = C;
  return true;
}

/// A new value takes the place of those that are kept otherwise: it is greater, or smaller, or always the same one.
bool Accumulation::takeNew(Value *New, const Facts &Known, ArrayRef<Value *> Kept) {
  for (const Fact &Each : Known)
    if (StringRef Applied = direction(Each, New, Kept); !Applied.empty()) {
      Ordering.insert(Each.Compare);
      return agree(Applied);
    }
  return takeConstant(New);
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

/// Whether a store that a decision leads to stores what was compared into the variable, or always the same number.
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
      Ordering.insert(Known.Compare);
      Stores.insert(&Store);
      return true;
    }
  return takeConstant(New) && (Stores.insert(&Store), true);
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
    if (!PositionStores.empty() || !Chosen.empty()) // what else is decided depends on which iteration comes first
      return false;
  }
  // What is compared with anything else (`x > m && m < 100`) stops growing, or not, as the order has it. Comparisons
  // that only choose positions are looked at with these.
  auto IsChosen = [&](User *U) { return isa<SelectInst>(U) && Chosen.contains(cast<Instruction>(U)); };
  auto IsInOrder = [&](Value *V) {
    auto *Compare = dyn_cast<CmpInst>(V);
    return Compare ? Ordering.contains(Compare) || all_of(V->users(), IsChosen)
                   : !Values.contains(V) && !isa<CastInst>(V);
  };
  if (IsExtreme && !all_of(Decisions, IsInOrder))
    return false;
  return (Decisions.empty() || IsExtreme || SetTo) && castsFit() && positionsFit();
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

std::string Accumulation::numberSetTo() const {
  if (auto *Number = dyn_cast_or_null<ConstantInt>(SetTo); Number && Number->getBitWidth() <= 64)
    return std::to_string(Number->getSExtValue());
  SmallString<16> Digits;
  if (auto *Number = dyn_cast_or_null<ConstantFP>(SetTo))
    Number->getValueAPF().toString(Digits);
  return isa_and_nonnull<ConstantPointerNull>(SetTo) ? "0" : Digits.str().str();
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
