// Lending.cpp: see Lending.h.
#include "Lending.h"

#include "Leaves.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

namespace {

/// Follows an address through the functions of a unit.
class Lending {
public:
  /// Goes on from the callee's parameter; false if the callee is not known.
  bool lend(const CallBase &Call, unsigned Number) {
    const Function *Callee = Call.getCalledFunction();
    if (callsLeaf(Call) || Call.doesNotCapture(Number) || isa<MemIntrinsic>(Call))
      return true;
    if (!Callee || !Callee->hasExactDefinition() || Number >= Callee->arg_size())
      return false;
    Addresses.insert(Callee->getArg(Number));
    return true;
  }

  bool isKept() {
    for (size_t K = 0; K < Addresses.size(); ++K)
      for (const Use &U : Addresses[K]->uses())
        if (!follow(U))
          return true;
    return false;
  }

private:
  /// False if the address is kept at `U`.
  bool follow(const Use &U) {
    const User *By = U.getUser();
    if (isa<LoadInst, ICmpInst>(By))
      return true;
    if (isa<GetElementPtrInst, CastInst, PHINode, SelectInst>(By))
      return By->getType()->isPtrOrPtrVectorTy() && (Addresses.insert(By), true);
    if (auto *Store = dyn_cast<StoreInst>(By))
      return U.getOperandNo() == StoreInst::getPointerOperandIndex() || putIntoVariable(Store->getPointerOperand());
    auto *Call = dyn_cast<CallBase>(By);
    return Call && Call->isArgOperand(&U) && lend(*Call, Call->getArgOperandNo(&U));
  }

  /// A parameter and a local pointer lie in memory that nothing else reads.
  bool putIntoVariable(const Value *Variable) {
    if (!isa<AllocaInst>(Variable))
      return false;
    for (const User *By : Variable->users())
      if (isa<LoadInst>(By))
        Addresses.insert(By);
      else if (auto *Store = dyn_cast<StoreInst>(By); Store ? Store->getValueOperand() == Variable : !isMarker(*By))
        return false;
    return true;
  }

  static bool isMarker(const User &By) {
    auto *Intrinsic = dyn_cast<IntrinsicInst>(&By);
    return Intrinsic && (Intrinsic->isLifetimeStartOrEnd() || Intrinsic->isDebugOrPseudoInst());
  }

  SmallSetVector<const Value *, 16> Addresses;
};

} // namespace

bool keepsAddress(const CallBase &Call, unsigned Number) {
  Lending Of;
  return !Of.lend(Call, Number) || Of.isKept();
}

} // namespace tracekit
