// Lending.cpp: see Lending.h.
#include "Lending.h"

#include "Leaves.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

namespace {

/// Follows an address through the functions of a unit.
class Lending {
public:
  /// `Call` is the one that is looked at, if one is: it may hand the address back.
  explicit Lending(const CallBase *Call) : Outermost(Call) {}

  /// Goes on from the callee's parameter.
  void lend(const CallBase &Call, unsigned Number) {
    const Function *Callee = Call.getCalledFunction();
    auto *Moved = dyn_cast<MemIntrinsic>(&Call);
    // Other files' definitions of an inline function say the same: this is about the source, before any optimisation.
    if (Callee && !Callee->isDeclaration() && !Callee->isInterposable() && Number < Callee->arg_size()) {
      Addresses.insert(Callee->getArg(Number));
      Entered.insert(&Call);
      if (Returning.contains(Callee))
        giveBack(Call);
    } else if (Moved || callsLeaf(Call) || handsBackParts(Call) || Call.doesNotCapture(Number))
      Found.IsStored |= Moved ? Number == 0 : !Call.onlyReadsMemory(Number);
    else
      Found = {true, true};
  }

  /// Goes on from what is loaded of a pointer.
  void put(const Value *Pointer) {
    if (!putIntoVariable(Pointer))
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
    else if (auto *Return = dyn_cast<ReturnInst>(By))
      giveBack(*Return->getFunction());
    else if (Store)
      put(Store->getPointerOperand());
    else
      Found = {true, true};
  }

  /// A function may return the address, as `std::max` does.
  void giveBack(const Function &From) {
    if (!Returning.insert(&From).second)
      return;
    bool IsEntered = false;
    for (const CallBase *Call : Entered)
      if (Call->getCalledFunction() == &From) {
        IsEntered = true;
        giveBack(*Call);
      }
    if (!IsEntered) // the function that has put the address into a pointer
      Found = {true, true};
  }

  void giveBack(const CallBase &To) {
    if (&To != Outermost)
      Addresses.insert(&To);
    else if (!isReadAtOnce(To))
      Found = {true, true};
  }

  /// Whether all that is done with a call's result is to read what it leads to, at once: here, or in a call that is
  /// given it. Where the result gets a name, code further on may get to the variable by it.
  static bool isReadAtOnce(const CallBase &Call) {
    auto *MayThrow = dyn_cast<InvokeInst>(&Call);
    const BasicBlock *After = MayThrow ? MayThrow->getNormalDest() : Call.getParent();
    return all_of(Call.uses(), [After](const Use &U) {
      auto *By = cast<Instruction>(U.getUser());
      auto *Next = dyn_cast<CallBase>(By);
      return By->getParent() == After &&
             (isa<LoadInst>(By) || (Next && Next->isArgOperand(&U) && isOnlyRead(*Next, U)));
    });
  }

  static bool isOnlyRead(const CallBase &By, const Use &U) {
    Loan Of = loanOf(By, By.getArgOperandNo(&U));
    return !Of.IsKept && !Of.IsStored;
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

  const CallBase *Outermost;
  SmallSetVector<const Value *, 16> Addresses;
  SmallSetVector<const CallBase *, 8> Entered;
  SmallPtrSet<const Function *, 4> Returning;
  Loan Found;
};

} // namespace

Loan loanOf(const CallBase &Call, unsigned Number) {
  Lending Of(&Call);
  Of.lend(Call, Number);
  return Of.follow();
}

Loan loanOf(const StoreInst &Store) {
  Lending Of(nullptr);
  Of.put(Store.getPointerOperand());
  return Of.follow();
}

} // namespace tracekit
