// Lending.cpp: see Lending.h.
#include "Lending.h"

#include "Leaves.h"
#include "Names.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace tracekit {

/// Places where an address is put, of more it is not followed.
static constexpr unsigned MostHeld = 64;

namespace {

/// Follows an address through the functions of a unit.
class Lending {
public:
  /// `Call` is the one that is looked at, if one is: it may hand the address back.
  Lending(const CallBase *Call, const DataLayout &DL) : Outermost(Call), DL(DL) {}

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

  /// A parameter, a local pointer, or a part of a local structure, as what a closure captures: in memory that nothing
  /// else reads but what is given the structure, and knows it as one.
  bool putIntoVariable(const Value *Pointer) {
    APInt Offset(DL.getIndexTypeSizeInBits(Pointer->getType()), 0);
    const Value *Variable = Pointer->stripAndAccumulateConstantOffsets(DL, Offset, /*AllowNonInbounds=*/false);
    return isa<AllocaInst>(Variable) && holdAt(Variable, Offset.getSExtValue());
  }

  /// Goes on from what is loaded at an offset from `Start`, which leads into a structure of this function or of its
  /// caller. False if it cannot be followed.
  bool holdAt(const Value *Start, int64_t Offset) {
    if (!Held.insert({Start, Offset}).second)
      return true;
    return Held.size() <= MostHeld && all_of(Start->uses(), [&](const Use &U) { return holdsBy(U, Offset); });
  }

  bool holdsBy(const Use &U, int64_t Offset) {
    const User *By = U.getUser();
    if (auto *Load = dyn_cast<LoadInst>(By)) {
      if (Load->getType()->isPointerTy() && Offset == 0)
        Addresses.insert(By);
      return Addresses.contains(By) || isBeside(Offset, Load->getType());
    }
    if (auto *Store = dyn_cast<StoreInst>(By))
      return U.getOperandNo() == StoreInst::getPointerOperandIndex()
                 ? Offset == 0 || isBeside(Offset, Store->getValueOperand()->getType())
                 : isHeldIn(*Store->getPointerOperand(), Offset);
    if (auto *Element = dyn_cast<GEPOperator>(By)) {
      APInt Of(DL.getIndexTypeSizeInBits(Element->getType()), 0);
      return Element->accumulateConstantOffset(DL, Of) && holdAt(By, Offset - Of.getSExtValue());
    }
    auto *Call = dyn_cast<CallBase>(By);
    return isMarker(*By) || (Call && Call->isArgOperand(&U) && isHeldBy(*Call, Call->getArgOperandNo(&U), Offset));
  }

  /// A structure's address in a parameter's own memory, or in a local pointer's: only loaded from there.
  bool isHeldIn(const Value &Variable, int64_t Offset) {
    return isa<AllocaInst>(Variable) && all_of(Variable.users(), [&](const User *By) {
             auto *Store = dyn_cast<StoreInst>(By);
             return Store ? Store->getPointerOperand() == &Variable
                          : isMarker(*By) || (isa<LoadInst>(By) && holdAt(By, Offset));
           });
  }

  /// A structure is copied, or given to a function of the unit.
  bool isHeldBy(const CallBase &Call, unsigned Number, int64_t Offset) {
    if (auto *Copied = dyn_cast<MemTransferInst>(&Call))
      return Number == 0 || (Number == 1 && putIntoCopy(*Copied, Offset));
    const Function *Callee = Call.getCalledFunction();
    return Callee && !Callee->isDeclaration() && !Callee->isInterposable() && Number < Callee->arg_size() &&
           holdAt(Callee->getArg(Number), Offset);
  }

  bool putIntoCopy(const MemTransferInst &Copied, int64_t Offset) {
    APInt To(DL.getIndexTypeSizeInBits(Copied.getDest()->getType()), 0);
    const Value *Variable = Copied.getDest()->stripAndAccumulateConstantOffsets(DL, To, /*AllowNonInbounds=*/false);
    return isa<AllocaInst>(Variable) && holdAt(Variable, To.getSExtValue() + Offset);
  }

  /// Whether an access of a type at the present place does not touch the pointer that lies `Offset` bytes on.
  bool isBeside(int64_t Offset, Type *Accessed) const {
    return Offset < 0 ? -Offset >= int64_t(DL.getPointerSize())
                      : Offset >= int64_t(DL.getTypeStoreSize(Accessed).getFixedValue());
  }

  static bool isMarker(const User &By) {
    auto *Intrinsic = dyn_cast<IntrinsicInst>(&By);
    return Intrinsic && (Intrinsic->isLifetimeStartOrEnd() || Intrinsic->isDebugOrPseudoInst());
  }

  const CallBase *Outermost;
  const DataLayout &DL;
  SmallSetVector<const Value *, 16> Addresses;
  SmallSetVector<const CallBase *, 8> Entered;
  SmallPtrSet<const Function *, 4> Returning;
  SmallSet<std::pair<const Value *, int64_t>, 8> Held; // places that hold the address
  Loan Found;
};

} // namespace

Loan loanOf(const CallBase &Call, unsigned Number) {
  Lending Of(&Call, Call.getModule()->getDataLayout());
  Of.lend(Call, Number);
  Loan Found = Of.follow();
  const DISubprogram *Caller = Call.getFunction()->getSubprogram();
  if (Caller && isFortran(*Caller))
    Found.IsKept = false;
  return Found;
}

Loan loanOf(const StoreInst &Store) {
  Lending Of(nullptr, Store.getModule()->getDataLayout());
  Of.put(Store.getPointerOperand());
  return Of.follow();
}

} // namespace tracekit
