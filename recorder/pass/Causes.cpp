// Causes.cpp: see Causes.h.
#include "Causes.h"

#include "Clocks.h"
#include "Exits.h"
#include "Leaves.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace llvm;

namespace tracekit {

/// Loads whose addresses come from loads, that many times, are followed no further.
static constexpr unsigned DeepestLoad = 16;

/// So many accesses are named that may have run as often as a decision.
static constexpr unsigned MostCounted = 8;

/// A way from a load to a loop that passes more blocks is not looked at.
static constexpr unsigned MostBlocksToTheEntry = 8;

Value *decidedBy(Instruction *Terminator) {
  if (auto *Branch = dyn_cast<BranchInst>(Terminator))
    return Branch->isConditional() ? Branch->getCondition() : nullptr;
  if (auto *Switch = dyn_cast<SwitchInst>(Terminator))
    return Switch->getCondition();
  if (auto *Computed = dyn_cast<IndirectBrInst>(Terminator))
    return Computed->getAddress();
  return nullptr;
}

void Causes::ofExit(Row Exit, BasicBlock *From, const BasicBlock *To) {
  OfKind = TK_CAUSE_OF_EXIT, Of = Exit, FirstOfThese = U.Causes.size(), Following.clear(), Followed.clear();
  if (!isOrdinaryExit(To))
    add(TK_CAUSE_ENDS, TK_NONE, false);
  else if (InSource && InSource->IsBoundComputed)
    return; // each test stores into temporaries and loads from them: the source says that it finds the same there
  else if (Value *Decision = decidedBy(From->getTerminator()))
    follow(Decision, 0);
  else
    addOther(); // a call that returns there and unwinds into the loop, say
  if (isOrdinaryExit(To) && isEscape(*From))
    count(*From);
}

bool Causes::isEscape(const BasicBlock &From) const {
  const DILocation *At = From.getTerminator()->getDebugLoc().get();
  return InSource && At && is_contained(InSource->Escapes, std::pair(At->getLine(), At->getColumn()));
}

/// Accesses that tell how often it was decided at the end of `From`, and how often to stay in the loop.
void Causes::count(const BasicBlock &From) {
  const Loop *Inner = LI.getLoopFor(&From);
  auto Add = [&](const BasicBlock &BB, uint32_t Kind) {
    if (LI.getLoopFor(&BB) == Inner)
      for (const Instruction &I : BB)
        if (auto Known = Rows.OpsOf.find(&I); isa<LoadInst, StoreInst>(I) && Known != Rows.OpsOf.end())
          return add(Kind, Known->second.first, false), true;
    return false;
  };
  const DomTreeNode *Node = DT.getNode(&From);
  while (Node && Inner->contains(Node->getBlock()) && !Add(*Node->getBlock(), TK_CAUSE_BEFORE))
    Node = Node->getIDom();
  unsigned Found = 0;
  for (const BasicBlock *Next : successors(&From)) {
    BasicBlockEdge Stays(&From, Next);
    if (!L.contains(Next) || !Stays.isSingleEdge())
      continue;
    for (const BasicBlock *BB : Inner->blocks())
      if (Found < MostCounted && DT.dominates(Stays, BB))
        Found += Add(*BB, TK_CAUSE_BEHIND);
  }
}

/// Whether `V` is `Phi` with `Steps` added.
static bool isAdvanced(Value *V, const PHINode &Phi, SmallVectorImpl<Value *> &Steps, unsigned Depth = 0) {
  if (V == &Phi)
    return true;
  auto *I = dyn_cast<Instruction>(V);
  if (!I || Depth == 8)
    return false;
  auto From = [&](unsigned Base, unsigned Step) {
    if (!isAdvanced(I->getOperand(Base), Phi, Steps, Depth + 1))
      return false;
    Steps.push_back(I->getOperand(Step));
    return true;
  };
  switch (I->getOpcode()) {
  case Instruction::Add:
    return From(0, 1) || From(1, 0);
  case Instruction::Sub:
    return From(0, 1);
  case Instruction::GetElementPtr:
    if (!isAdvanced(I->getOperand(0), Phi, Steps, Depth + 1))
      return false;
    Steps.append(I->op_begin() + 1, I->op_end());
    return true;
  default:
    return isa<CastInst>(I) && isAdvanced(I->getOperand(0), Phi, Steps, Depth + 1);
  }
}

/// The load that gives a header phi its value for the next iteration: one that the optimiser has moved there from the
/// next iteration's beginning. Null if there is none.
static LoadInst *loadedAhead(const PHINode &Phi, const Loop &L) {
  const BasicBlock *Latch = L.getLoopLatch();
  Value *Next = Latch ? Phi.getIncomingValueForBlock(Latch) : nullptr;
  while (auto *Cast = dyn_cast_or_null<CastInst>(Next))
    Next = Cast->getOperand(0);
  return dyn_cast_or_null<LoadInst>(Next);
}

/// Whether nothing may store between a load before the loop and the loop.
static bool holdsAtEntry(const LoadInst &Load, const Loop &L) {
  const BasicBlock *Before = L.getLoopPredecessor();
  if (!Before)
    return false;
  SmallPtrSet<const BasicBlock *, 8> Seen;
  SmallVector<const BasicBlock *, 8> Open = {Before};
  while (!Open.empty()) { // the load's block dominates all of these
    const BasicBlock *BB = Open.pop_back_val();
    if (!Seen.insert(BB).second)
      continue;
    if (Seen.size() > MostBlocksToTheEntry)
      return false;
    auto First = BB == Load.getParent() ? std::next(Load.getIterator()) : BB->begin();
    if (any_of(make_range(First, BB->end()), [](const Instruction &I) { return I.mayWriteToMemory(); }))
      return false;
    if (BB != Load.getParent())
      Open.append(pred_begin(BB), pred_end(BB));
  }
  return true;
}

bool readsOnePlace(PHINode &Phi, const Loop &L, bool FromEntry, SmallVectorImpl<LoadInst *> &Loads) {
  const Value *Place = nullptr;
  SmallPtrSet<Value *, 8> Seen;
  SmallVector<Value *, 8> Open = {&Phi};
  while (!Open.empty()) {
    Value *V = Open.pop_back_val();
    if (!Seen.insert(V).second)
      continue;
    auto *I = dyn_cast<Instruction>(V);
    if (auto *Merge = dyn_cast<PHINode>(V); Merge && L.contains(I)) {
      Open.append(Merge->op_begin(), Merge->op_end());
      continue;
    }
    auto *Load = dyn_cast<LoadInst>(V);
    if (!Load || !Load->isSimple() || (Place && Load->getPointerOperand() != Place))
      return false;
    Place = Load->getPointerOperand();
    if (L.contains(Load))
      Loads.push_back(Load);
    else if (FromEntry && !holdsAtEntry(*Load, L))
      return false;
  }
  return Place && L.isLoopInvariant(Place) && !Loads.empty();
}

void Causes::ofRecurrence(Row PhiRow, PHINode &Phi) {
  OfKind = TK_CAUSE_OF_PHI, Of = PhiRow, FirstOfThese = U.Causes.size(), Following.clear(), Followed.clear();
  const BasicBlock *Latch = L.getLoopLatch();
  SmallVector<Value *, 4> Steps;
  SmallVector<LoadInst *, 4> Joined;
  if (LoadInst *Load = loadedAhead(Phi, L))
    Steps = {Load};
  else if (readsOnePlace(Phi, L, true, Joined))
    Steps.append(Joined.begin(), Joined.end());
  else if (!Latch || !isAdvanced(Phi.getIncomingValueForBlock(Latch), Phi, Steps))
    return;
  if (!all_of(Steps, [&](Value *Step) { return follow(Step, 0); }))
    U.Causes.resize(FirstOfThese);
}

/// Appends what `Root` depends on; whether it is the same in all iterations as long as all loads read the same.
bool Causes::follow(Value *Root, unsigned Depth) {
  bool Fixed = true;
  SmallPtrSet<Instruction *, 16> Seen;
  SmallVector<Value *, 16> Open = {Root};
  while (!Open.empty()) {
    auto *I = dyn_cast_or_null<Instruction>(Open.pop_back_val());
    if (I && L.contains(I) && Seen.insert(I).second)
      Fixed &= followInto(*I, Open, Depth);
  }
  return Fixed;
}

bool Causes::followInto(Instruction &I, SmallVectorImpl<Value *> &Open, unsigned Depth) {
  if (auto *Phi = dyn_cast<PHINode>(&I))
    return followPhi(*Phi, Open, Depth);
  if (auto *Load = dyn_cast<LoadInst>(&I))
    return followLoad(*Load, Depth);
  auto *Call = dyn_cast<CallBase>(&I);
  if (Call && !callsLeaf(I) && (mayReenter(I) || !Call->doesNotAccessMemory()))
    return followCall(*Call, Depth);
  if (!Call && I.mayReadFromMemory())
    return addOther();
  Open.append(I.op_begin(), I.op_end());
  return true;
}

bool Causes::followPhi(PHINode &Phi, SmallVectorImpl<Value *> &Open, unsigned Depth) {
  if (SmallVector<LoadInst *, 4> Joined; readsOnePlace(Phi, L, true, Joined)) {
    bool Fixed = true;
    for (LoadInst *Load : Joined)
      Fixed &= followLoad(*Load, Depth);
    return Fixed;
  }
  if (!LI.isLoopHeader(Phi.getParent())) {
    Open.append(Phi.op_begin(), Phi.op_end());
    return chosenBetween(Phi, Open) || addOther();
  }
  if (LoadInst *Load = Phi.getParent() == L.getHeader() ? loadedAhead(Phi, L) : nullptr)
    return Following.insert(&Phi).second ? follow(Load, Depth + 1) : addOther();
  auto Known = Rows.PhiOf.find(&Phi);
  if (Phi.getParent() != L.getHeader() || Known == Rows.PhiOf.end())
    return addOther(); // what an inner loop ends with
  add(TK_CAUSE_PHI, Known->second, false);
  return false;
}

/// Appends to `Open` the decisions between the blocks that a phi merges; false if there is a loop between them.
bool Causes::chosenBetween(const PHINode &Merge, SmallVectorImpl<Value *> &Open) const {
  const DomTreeNode *Node = DT.getNode(Merge.getParent());
  BasicBlock *First = Node && Node->getIDom() ? Node->getIDom()->getBlock() : nullptr;
  if (!First || !L.contains(First))
    return false;
  auto Decide = [&](BasicBlock *BB) {
    Open.push_back(decidedBy(BB->getTerminator()));
    return isa<BranchInst, SwitchInst, IndirectBrInst>(BB->getTerminator());
  };
  SmallPtrSet<BasicBlock *, 8> Seen = {First};
  SmallVector<BasicBlock *, 8> Between(Merge.block_begin(), Merge.block_end());
  while (!Between.empty()) {
    BasicBlock *BB = Between.pop_back_val();
    if (!Seen.insert(BB).second)
      continue;
    if (LI.isLoopHeader(BB) || !Decide(BB))
      return false;
    Between.append(pred_begin(BB), pred_end(BB));
  }
  return Decide(First);
}

bool Causes::followLoad(LoadInst &Load, unsigned Depth) {
  auto Known = Rows.OpsOf.find(&Load);
  if (!Load.isSimple() || Known == Rows.OpsOf.end() || Depth == DeepestLoad)
    return addOther();
  if (auto Before = Followed.find(&Load); Before != Followed.end())
    return Before->second;
  bool Fixed = follow(Load.getPointerOperand(), Depth + 1);
  Followed[&Load] = Fixed;
  for (unsigned K = 0; K < Known->second.second; ++K)
    add(TK_CAUSE_LOAD, Known->second.first + K, Fixed);
  return Fixed;
}

bool Causes::followCall(CallBase &Call, unsigned Depth) {
  auto Known = Rows.OpsOf.find(&Call);
  if (Known == Rows.OpsOf.end() || Depth == DeepestLoad)
    return addOther();
  if (auto Before = Followed.find(&Call); Before != Followed.end())
    return Before->second;
  bool Fixed = !readsClock(Call);
  for (Value *Given : Call.operands())
    Fixed &= follow(Given, Depth + 1);
  Followed[&Call] = Fixed;
  for (unsigned K = 0; K < Known->second.second; ++K)
    add(TK_CAUSE_CALL, Known->second.first + K, Fixed);
  return Fixed;
}

bool Causes::addOther() {
  add(TK_CAUSE_OTHER, TK_NONE, false);
  return false;
}

/// Each cause once.
void Causes::add(uint32_t Kind, Row Index, bool Fixed) {
  for (size_t K = FirstOfThese; K < U.Causes.size(); ++K)
    if (U.Causes[K].kind == Kind && U.Causes[K].index == Index)
      return;
  U.Causes.push_back({OfKind, Of, Kind, Index, Fixed ? uint32_t(TK_CAUSE_FLAG_FIXED) : 0});
}

} // namespace tracekit
