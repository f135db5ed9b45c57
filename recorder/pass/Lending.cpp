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
  /// Goes on from the callee's parameter.
  void lend(const CallBase &Call, unsigned Number) {
    const Function *Callee = Call.getCalledFunction();
    auto *Moved = dyn_cast<MemIntrinsic>(&Call);
    // Other files' definitions of an inline function say the same: this is about the source, before any optimisation.
    if (Callee && !Callee->isDeclaration() && !Callee->isInterposable() && Number < Callee->arg_size())
      Addresses.insert(Callee->getArg(Number));
    else if (Moved || callsLeaf(Call) || Call.doesNotCapture(Number))
      Found.IsStored |= Moved ? Number == 0 : !Call.onlyReadsMemory(Number);
    else
      Found = {true, true};
  }

  Loan follow() {
    for (size_t K = 0; K < Addresses.size(); ++K)
      for (const Use &U : Addresses[K]->uses())
        follow(U);
    return Found;
  }

private:
  void follow(const Use &U) {
    const User *By = U.getUser();
    if (isa<LoadInst, ICmpInst>(By))
      return;
    if (isa<GetElementPtrInst, CastInst, PHINode, SelectInst>(By) && By->getType()->isPtrOrPtrVectorTy())
      Addresses.insert(By);
    else if (auto *Store = dyn_cast<StoreInst>(By); Store && U.getOperandNo() == StoreInst::getPointerOperandIndex())
      Found.IsStored = true;
    else if (auto *Call = dyn_cast<CallBase>(By); Call && Call->isArgOperand(&U))
      lend(*Call, Call->getArgOperandNo(&U));
    else if (!Store || !putIntoVariable(Store->getPointerOperand()))
      Found = {true, true};
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
  Loan Found;
};

} // namespace

Loan loanOf(const CallBase &Call, unsigned Number) {
  Lending Of;
  Of.lend(Call, Number);
  return Of.follow();
}

} // namespace tracekit
