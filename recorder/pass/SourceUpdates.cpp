// SourceUpdates.cpp: see SourceUpdates.h.
#include "SourceUpdates.h"

#include "References.h"
#include "format.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace tracekit {

struct SourceUpdates::Analyses {
  Analyses(Function &F, LoopInfo &LI, DominatorTree &DT, const TargetLibraryInfo &TLI)
      : AC(F), SE(F, const_cast<TargetLibraryInfo &>(TLI), AC, DT, LI), PDT(F), Shape{LI, DT, PDT, SE} {}

  AssumptionCache AC;
  ScalarEvolution SE;
  PostDominatorTree PDT;
  FunctionShape Shape;
};

const FunctionShape &SourceUpdates::shape() {
  if (!Made)
    Made = std::make_shared<Analyses>(F, LI, DT, TLI);
  return Made->Shape;
}

/// The loads and stores of the whole variable in a loop; false if something else is done with it there.
static bool wholeAccesses(Value &Variable, const Loop &L, SmallVectorImpl<LoadInst *> &Loads,
                          SmallVectorImpl<StoreInst *> &Stores) {
  auto *Local = dyn_cast<AllocaInst>(&Variable);
  Type *Declared = Local ? Local->getAllocatedType() : cast<GlobalVariable>(Variable).getValueType();
  if (!Declared->isIntegerTy() && !Declared->isFloatingPointTy() && !Declared->isPointerTy())
    return false;
  for (User *U : Variable.users()) {
    auto *I = dyn_cast<Instruction>(U);
    if (!I && isa<GlobalVariable>(Variable) && U->getNumUses() == 0)
      continue;
    if (!I)
      return false;
    if (!L.contains(I) || I->isDebugOrPseudoInst() || I->isLifetimeStartOrEnd())
      continue;
    auto *Load = dyn_cast<LoadInst>(I);
    auto *Store = dyn_cast<StoreInst>(I);
    if (Load && Load->isSimple() && Load->getType() == Declared)
      Loads.push_back(Load);
    else if (Store && Store->isSimple() && Store->getValueOperand() != &Variable &&
             Store->getValueOperand()->getType() == Declared)
      Stores.push_back(Store);
    else
      return false;
  }
  return !Loads.empty() && !Stores.empty();
}

/// The one operator by which all loads and stores of a variable accumulate in it, and where; nothing if there is none.
static std::optional<SourceUpdate> commonReduction(ArrayRef<LoadInst *> Loads, ArrayRef<StoreInst *> Stores,
                                                   const FunctionShape &In) {
  SmallPtrSet<Instruction *, 8> Known;
  StringRef Common;
  SmallVector<const DILocation *, 4> Places;
  for (LoadInst *Load : Loads) {
    if (Known.contains(Load))
      continue;
    Accumulation Of(In.LI.getLoopFor(Load->getParent()), In);
    StringRef Operator = Of.ofLoad(*Load);
    if (Operator.empty() || Operator == SameValue)
      continue; // `m > x ? m : x` loads the variable once more where it is kept: that one is known by the other
    if (!Of.PositionStores.empty() || (!Common.empty() && Operator != Common))
      return std::nullopt;
    Common = Operator;
    Places.append(Of.places());
    Known.insert(Of.Loads.begin(), Of.Loads.end());
    Known.insert(Of.Stores.begin(), Of.Stores.end());
  }
  auto IsKnown = [&](Instruction *Access) { return Known.contains(Access); };
  if (Common.empty() || !all_of(Loads, IsKnown) || !all_of(Stores, IsKnown))
    return std::nullopt;
  return SourceUpdate{TK_PHI_REDUCTION, Common.str(), Places};
}

std::string constantStep(const Value &Sum) {
  auto *Next = dyn_cast<Instruction>(&Sum);
  if (!Next || Next->getNumOperands() != 2)
    return "";
  auto *By = dyn_cast<ConstantInt>(Next->getOperand(1));
  if (!By || By->getBitWidth() > 64)
    return "";
  int64_t Step = By->getSExtValue();
  bool IsPointer = isa<GetElementPtrInst>(Next);
  if (IsPointer) {
    const DataLayout &DL = Next->getModule()->getDataLayout();
    APInt Offset(DL.getIndexTypeSizeInBits(Next->getType()), 0);
    if (!cast<GetElementPtrInst>(Next)->accumulateConstantOffset(DL, Offset))
      return "";
    Step = Offset.getSExtValue();
  } else if (Next->getOpcode() == Instruction::Sub) {
    Step = -Step;
  } else if (Next->getOpcode() != Instruction::Add) {
    return "";
  }
  return (Twine(Step < 0 ? "" : "+") + Twine(Step) + (IsPointer ? " bytes" : "")).str();
}

/// What the one store of a variable adds to it in each iteration; "" if that is not known.
static std::string stepOfEach(ArrayRef<LoadInst *> Loads, const StoreInst &Store, const Loop &L,
                              const FunctionShape &In) {
  const BasicBlock *Latch = L.getLoopLatch();
  if (!Latch || In.LI.getLoopFor(Store.getParent()) != &L || !In.DT.dominates(Store.getParent(), Latch))
    return "";
  auto *Next = dyn_cast<Instruction>(Store.getValueOperand());
  bool AddsToIt = Next && Next->getNumOperands() && is_contained(Loads, dyn_cast<LoadInst>(Next->getOperand(0)));
  return AddsToIt ? constantStep(*Next) : "";
}

std::optional<SourceUpdate> SourceUpdates::of(Value *Variable, const Loop &L) {
  SmallVector<LoadInst *, 4> Loads;
  SmallVector<StoreInst *, 4> Stores;
  if (!wholeAccesses(*Variable, L, Loads, Stores))
    return std::nullopt;
  if (std::optional<SourceUpdate> Reduction = commonReduction(Loads, Stores, shape()))
    return Reduction;
  std::string Step = Stores.size() == 1 ? stepOfEach(Loads, *Stores.front(), L, shape()) : "";
  if (!Step.empty())
    return SourceUpdate{TK_PHI_INDUCTION, Step};
  return std::nullopt;
}

std::optional<SourceUpdate> SourceUpdates::of(const DILocalVariable &Reference, const Loop &L) {
  SmallVector<LoadInst *, 4> Loads;
  SmallVector<StoreInst *, 4> Stores;
  SmallPtrSet<Type *, 2> Types;
  for (BasicBlock *BB : L.blocks())
    for (Instruction &I : *BB) {
      Value *Address = getLoadStorePointerOperand(&I);
      if (!Address || referenceAt(Address) != &Reference)
        continue;
      auto *Load = dyn_cast<LoadInst>(&I);
      auto *Store = dyn_cast<StoreInst>(&I);
      if (isOptional(*Address) || !(Load ? Load->isSimple() : Store && Store->isSimple()))
        return std::nullopt;
      Types.insert(getLoadStoreType(&I));
      Load ? Loads.push_back(Load) : Stores.push_back(Store);
    }
  if (Loads.empty() || Stores.empty() || Types.size() > 1)
    return std::nullopt;
  return commonReduction(Loads, Stores, shape());
}

} // namespace tracekit
