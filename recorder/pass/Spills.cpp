// Spills.cpp: see Spills.h.
#include "Spills.h"

#include "Compat.h"
#include "Lending.h"
#include "Operations.h"
#include "Scalars.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

namespace {

/// A variable whose address is lent to calls that only read it (`rows.push_back(i)`): its value goes into a register,
/// and into memory before each such call. One that may have no value then stays as it is: a read of it is an error.
class Spilled {
public:
  Spilled(AllocaInst &Variable, const DominatorTree &DT) : Variable(Variable), DT(DT) {}

  bool keepInRegister() {
    Type *T = Variable.getAllocatedType();
    if (!Variable.isStaticAlloca() || Variable.isArrayAllocation() || onlyValueOf(T) != T ||
        !all_of(Variable.uses(), [this](const Use &U) { return collect(U); }) || Calls.empty() ||
        !all_of(Calls, [this](const CallBase *Call) { return isAssignedBefore(*Call); }))
      return false;
    auto *Register = new AllocaInst(T, Variable.getAddressSpace(), nullptr, Variable.getAlign(), "", &Variable);
    copyDeclaration(Variable, *Register);
    for (Instruction *Access : Accesses)
      Access->setOperand(isa<StoreInst>(Access) ? StoreInst::getPointerOperandIndex() : 0, Register);
    for (CallBase *Call : Calls) {
      IRBuilder<> B(Call);
      B.CreateAlignedStore(B.CreateAlignedLoad(T, Register, Register->getAlign()), &Variable, Variable.getAlign());
    }
    return true;
  }

private:
  bool collect(const Use &U) {
    auto *By = cast<Instruction>(U.getUser());
    Type *T = Variable.getAllocatedType();
    auto *Store = dyn_cast<StoreInst>(By);
    auto *Load = dyn_cast<LoadInst>(By);
    if (Load || (Store && U.getOperandNo() == StoreInst::getPointerOperandIndex())) {
      Accesses.push_back(By);
      return Load ? Load->isSimple() && Load->getType() == T
                  : Store->isSimple() && Store->getValueOperand()->getType() == T;
    }
    auto *Call = dyn_cast<CallBase>(By);
    if (auto *Built = dyn_cast<IntrinsicInst>(By); Built && Built->isLifetimeStartOrEnd())
      return true;
    if (!Call || !Call->isArgOperand(&U))
      return false;
    Calls.insert(Call);
    unsigned Number = Call->getArgOperandNo(&U);
    Loan Of = loanOf(*Call, Number);
    bool MayReturn =
        !Call->use_empty() && !Call->getType()->isIntOrIntVectorTy() && !Call->getType()->isFPOrFPVectorTy();
    return !Of.IsKept && !Of.IsStored && !MayReturn && !Call->isByValArgument(Number);
  }

  bool isAssignedBefore(const CallBase &Call) const {
    return any_of(Accesses, [&](Instruction *I) { return isa<StoreInst>(I) && DT.dominates(I, &Call); });
  }

  AllocaInst &Variable;
  const DominatorTree &DT;
  SmallVector<Instruction *, 8> Accesses;
  SmallSetVector<CallBase *, 4> Calls;
};

} // namespace

void spillBeforeCalls(Function &F) {
  if (callsReturnTwice(F))
    return;
  DominatorTree DT(F);
  for (AllocaInst *Variable : localsOf(F))
    Spilled(*Variable, DT).keepInRegister();
}

} // namespace tracekit
