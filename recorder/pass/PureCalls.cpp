// PureCalls.cpp: see PureCalls.h.
#include "PureCalls.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

static bool isOwnVariable(const Value *Pointer) { return isa<AllocaInst>(getUnderlyingObject(Pointer)); }

/// Whether an instruction, but for what it calls, changes nothing that outlives its function's call.
static bool staysInside(const Instruction &I) {
  if (I.isVolatile() || (I.isAtomic() && !isa<CallBase>(I)))
    return false;
  if (auto *Store = dyn_cast<StoreInst>(&I))
    return isOwnVariable(Store->getPointerOperand());
  if (auto *Moved = dyn_cast<MemIntrinsic>(&I))
    return isOwnVariable(Moved->getRawDest());
  if (auto *Built = dyn_cast<IntrinsicInst>(&I))
    return Built->onlyReadsMemory() || Built->isLifetimeStartOrEnd() || I.isDebugOrPseudoInst();
  return isa<CallBase>(I) || !I.mayWriteToMemory();
}

bool changesNothing(const CallBase &Call) {
  SmallSetVector<const Function *, 8> Open;
  auto Enter = [&Open](const CallBase &Next) {
    const Function *Callee = Next.getCalledFunction();
    if (Callee && !Callee->isDeclaration() && !Callee->isInterposable())
      Open.insert(Callee);
    else if (!Next.onlyReadsMemory())
      return false;
    return true;
  };
  if (!Enter(Call))
    return false;
  for (size_t K = 0; K < Open.size(); ++K)
    for (const Instruction &I : instructions(*Open[K])) {
      auto *Next = dyn_cast<CallBase>(&I);
      if (!staysInside(I) || (Next && !isa<IntrinsicInst>(Next) && !Enter(*Next)))
        return false;
    }
  return true;
}

} // namespace tracekit
