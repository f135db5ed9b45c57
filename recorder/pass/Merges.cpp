// Merges.cpp: undoes the optimiser's partial redundancy elimination of what a loop hands on. `i + 1` that only one way
// through an iteration needs is computed on the others, too, and merged; that i advances by 1 is no longer to be seen.
#include "Compat.h"
#include "Segments.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/IRBuilder.h"

using namespace llvm;

namespace tracekit {

/// A value that is what `Phi` merges, whichever way was taken: the others compute the same from the same. Null if there
/// is none.
static Instruction *mergedAlike(const PHINode &Phi, const DominatorTree &DT) {
  auto *First = dyn_cast<Instruction>(Phi.getIncomingValue(0));
  if (!First || !isa<BinaryOperator, CastInst, GetElementPtrInst>(First) || Phi.getParent()->isEHPad())
    return nullptr;
  for (const Value *V : Phi.incoming_values()) {
    auto *I = dyn_cast<Instruction>(V);
    if (!I || !I->isSameOperationAs(First) || !equal(I->operands(), First->operands()))
      return nullptr;
  }
  bool AreKnown = all_of(First->operands(), [&](Value *Of) {
    auto *I = dyn_cast<Instruction>(Of);
    return !I || (I != &Phi && DT.dominates(I, &Phi));
  });
  return AreKnown ? First : nullptr;
}

/// The merges behind a value that `L` hands on, those that others merge first.
static SmallVector<PHINode *, 8> mergesBehind(Value *V, const Loop &L, const LoopInfo &LI) {
  SmallSetVector<Value *, 8> Found;
  Found.insert(V);
  SmallVector<PHINode *, 8> Merges;
  for (size_t K = 0; K < Found.size(); ++K)
    if (auto *Phi = dyn_cast<PHINode>(Found[K]); Phi && L.contains(Phi) && !LI.isLoopHeader(Phi->getParent())) {
      Merges.push_back(Phi);
      Found.insert(Phi->value_op_begin(), Phi->value_op_end());
    }
  std::reverse(Merges.begin(), Merges.end());
  return Merges;
}

static void replaceByOne(PHINode &Phi, const Instruction &One) {
  Instruction *Again = One.clone();
  for (Value *V : Phi.incoming_values())
    Again->andIRFlags(V);
  IRBuilder<>(Phi.getParent(), Phi.getParent()->getFirstInsertionPt()).Insert(Again);
  Again->setDebugLoc(One.getDebugLoc());
  Phi.replaceAllUsesWith(Again);
  Phi.eraseFromParent();
}

/// Whether `V` is what `Cast` makes of `From`.
static bool isCastOf(const Value *V, const Value *From, const CastInst &Cast, const DataLayout &DL) {
  if (auto *C = dyn_cast<Constant>(From))
    if (auto *Known = dyn_cast<Constant>(V))
      return Known == ConstantFoldCastOperand(Cast.getOpcode(), const_cast<Constant *>(C), V->getType(), DL);
  auto *Made = dyn_cast<CastInst>(V);
  return Made && Made->isSameOperationAs(&Cast) && Made->getOperand(0) == From;
}

/// Another phi of the block, and a cast that makes `Wide` of it, whichever way was taken: of `unsigned c` the optimiser
/// hands on the 64 bits, too, that addresses take. Null if there is none.
static std::pair<PHINode *, CastInst *> widened(PHINode &Wide, const DataLayout &DL) {
  for (Value *V : Wide.incoming_values())
    if (auto *Cast = dyn_cast<CastInst>(V); Cast && isa<ZExtInst, SExtInst>(Cast))
      for (PHINode &Of : Wide.getParent()->phis())
        if (&Of != &Wide && Of.getType() == Cast->getSrcTy() && all_of(Wide.blocks(), [&](BasicBlock *From) {
              return isCastOf(Wide.getIncomingValueForBlock(From), Of.getIncomingValueForBlock(From), *Cast, DL);
            }))
          return {&Of, Cast};
  return {};
}

static void joinWidened(BasicBlock &Header, const DataLayout &DL) {
  for (PHINode &Wide : make_early_inc_range(Header.phis()))
    if (auto [Of, Cast] = widened(Wide, DL); Of && variablesOf(&Wide).empty()) {
      Instruction *Again = Cast->clone();
      Again->setOperand(0, Of);
      Again->dropPoisonGeneratingFlags();
      IRBuilder<>(&Header, Header.getFirstInsertionPt()).Insert(Again);
      Again->setDebugLoc(Wide.getDebugLoc());
      Wide.replaceAllUsesWith(Again);
      Wide.eraseFromParent();
    }
}

void joinMerges(const DominatorTree &DT, const LoopInfo &LI) {
  for (Loop *L : LI.getLoopsInPreorder())
    for (PHINode &Carried : L->getHeader()->phis())
      for (BasicBlock *Latch : Carried.blocks())
        if (L->contains(Latch))
          for (PHINode *Phi : mergesBehind(Carried.getIncomingValueForBlock(Latch), *L, LI))
            if (Instruction *One = mergedAlike(*Phi, DT))
              replaceByOne(*Phi, *One);
  for (Loop *L : LI.getLoopsInPreorder())
    if (BasicBlock *Header = L->getHeader(); !Header->isEHPad())
      joinWidened(*Header, Header->getModule()->getDataLayout());
}

} // namespace tracekit
