// Equality.cpp: see Equality.h.
#include "Equality.h"

#include "Leaves.h"
#include "PureCalls.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

/// Expressions that are nested deeper count as different, and so many blocks between two loads as a write; values that
/// depend on more than so many pairs count as different, too.
static constexpr unsigned DeepestExpression = 12, MostBlocks = 32, MostPairs = 64;

static bool areDifferentObjects(const Value *A, const Value *B) {
  const Value *Of = getUnderlyingObject(A), *OfOther = getUnderlyingObject(B);
  return Of != OfOther && isIdentifiedObject(Of) && isIdentifiedObject(OfOther);
}

bool Equality::mayChange(const Instruction &I, const Value *Pointer) {
  if (!I.mayWriteToMemory() || callsLeaf(I) || I.isDebugOrPseudoInst() || isPureCall(I))
    return false;
  if (auto *Marker = dyn_cast<IntrinsicInst>(&I); Marker && Marker->isLifetimeStartOrEnd())
    return false;
  auto *Store = dyn_cast<StoreInst>(&I);
  return !Store || !Pointer || !areDifferentObjects(Store->getPointerOperand(), Pointer);
}

bool Equality::isUntouched(const Value *Pointer, const Instruction &First, const Instruction &Then) const {
  const BasicBlock *From = First.getParent(), *To = Then.getParent();
  if (!contains(From) || !contains(To) || !DT->dominates(&First, &Then))
    return false;
  auto Touches = [&](BasicBlock::const_iterator At, BasicBlock::const_iterator End) {
    return any_of(make_range(At, End), [&](const Instruction &I) { return mayChange(I, Pointer); });
  };
  if (From == To)
    return !Touches(std::next(First.getIterator()), Then.getIterator());
  if (Touches(std::next(First.getIterator()), From->end()) || Touches(To->begin(), Then.getIterator()))
    return false;
  SmallPtrSet<const BasicBlock *, 16> Seen = {From};
  SmallVector<const BasicBlock *, 16> Open(predecessors(To));
  while (!Open.empty()) {
    const BasicBlock *BB = Open.pop_back_val();
    if (!Seen.insert(BB).second)
      continue;
    if ((L && BB == L->getHeader()) || Seen.size() > MostBlocks || Touches(BB->begin(), BB->end()))
      return false;
    Open.append(pred_begin(BB), pred_end(BB));
  }
  return true;
}

bool Equality::equal(const Value *A, const Value *B, unsigned Depth) const {
  if (A == B)
    return true;
  auto *I = dyn_cast<Instruction>(A), *J = dyn_cast<Instruction>(B);
  if (!I || !J || Depth == DeepestExpression || !I->isSameOperationAs(J) || isa<PHINode, AllocaInst>(I))
    return false;
  if (auto *Load = dyn_cast<LoadInst>(I)) {
    auto *Again = cast<LoadInst>(J);
    if (!Load->isSimple() || !Again->isSimple())
      return false;
    if (!isUntouched(Load->getPointerOperand(), *Load, *Again) &&
        !isUntouched(Load->getPointerOperand(), *Again, *Load))
      return false;
  } else if (auto *Call = dyn_cast<CallBase>(I)) {
    bool IsFixed = callsLeaf(*I) || (Call->doesNotAccessMemory() && isa<IntrinsicInst>(Call));
    if (Call->getCalledOperand() != cast<CallBase>(J)->getCalledOperand() ||
        !(IsFixed || (isPureCall(*I) && (isUntouched(nullptr, *I, *J) || isUntouched(nullptr, *J, *I)))))
      return false;
  } else if (I->mayReadOrWriteMemory()) {
    return false;
  }
  for (unsigned K = 0; K < I->getNumOperands(); ++K)
    if (!equal(I->getOperand(K), J->getOperand(K), Depth + 1))
      return false;
  return true;
}

using Pairs = SmallSet<std::pair<const Value *, const Value *>, 16>;

/// What a phi takes along the K-th edge of another one of its block; most often it has them in the same order.
static Value *incomingAlong(const PHINode &Phi, const PHINode &Other, unsigned K) {
  BasicBlock *From = Other.getIncomingBlock(K);
  return Phi.getIncomingBlock(K) == From ? Phi.getIncomingValue(K) : Phi.getIncomingValueForBlock(From);
}

uint64_t PhiSums::of(const PHINode &Phi) {
  auto [Known, New] = Sums.try_emplace(&Phi);
  if (New)
    for (unsigned K = 0; K < Phi.getNumIncomingValues(); ++K) {
      const Value *V = Phi.getIncomingValue(K);
      auto *I = dyn_cast<Instruction>(V);
      Known->second +=
          I ? hash_combine(Phi.getIncomingBlock(K), I->getOpcode()) : hash_combine(Phi.getIncomingBlock(K), V);
    }
  return Known->second;
}

/// Whether both are computed alike, if those of `Assumed` are the same.
static bool areAlike(const Value *A, const Value *B, Pairs &Assumed, PhiSums &Sums) {
  if (A == B)
    return true;
  auto *I = dyn_cast<Instruction>(A), *J = dyn_cast<Instruction>(B);
  if (!I || !J || I->getOpcode() != J->getOpcode() || I->getType() != J->getType())
    return false;
  auto *Phi = dyn_cast<PHINode>(I), *Other = dyn_cast<PHINode>(J);
  if (Phi ? Phi->getParent() != Other->getParent() || Sums.of(*Phi) != Sums.of(*Other)
          : !I->isSameOperationAs(J) || I->mayReadOrWriteMemory() || isa<AllocaInst, FreezeInst>(I))
    return false;
  if (auto *Call = dyn_cast<CallBase>(I);
      Call && (!isa<IntrinsicInst>(Call) || Call->getCalledOperand() != cast<CallBase>(J)->getCalledOperand()))
    return false;
  if (!Assumed.insert({A, B}).second)
    return true;
  if (Assumed.size() > MostPairs)
    return false;
  if (Phi) {
    for (unsigned K = 0; K < Phi->getNumIncomingValues(); ++K)
      if (!areAlike(Phi->getIncomingValue(K), incomingAlong(*Other, *Phi, K), Assumed, Sums))
        return false;
    return true;
  }
  for (unsigned K = 0; K < I->getNumOperands(); ++K)
    if (!areAlike(I->getOperand(K), J->getOperand(K), Assumed, Sums))
      return false;
  return true;
}

bool Equality::areTwins(const Value *A, const Value *B, PhiSums &Sums) {
  Pairs Assumed;
  return areAlike(A, B, Assumed, Sums);
}

} // namespace tracekit
