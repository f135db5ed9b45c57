// Scalars.cpp: see Scalars.h. Called directly, because passes skip optnone functions.
#include "Scalars.h"

#include "Operations.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace tracekit {

Type *onlyValueOf(Type *Declared) {
  for (;;) {
    if (auto *Class = dyn_cast<StructType>(Declared); Class && Class->getNumElements() == 1)
      Declared = Class->getElementType(0);
    else if (auto *Array = dyn_cast<ArrayType>(Declared); Array && Array->getNumElements() == 1)
      Declared = Array->getElementType();
    else
      return Declared->isSingleValueType() && !Declared->isVectorTy() ? Declared : nullptr;
  }
}

/// More blocks than what is inlined has between a choice and what follows from it.
static constexpr unsigned LongestWay = 16;

namespace {

/// A local variable of a class with one value: it is read and written as a whole, through addresses of its members that
/// are its own.
class Wrapped {
public:
  explicit Wrapped(AllocaInst &Variable)
      : Variable(Variable), Value(onlyValueOf(Variable.getAllocatedType())),
        Size(Variable.getModule()->getDataLayout().getTypeAllocSize(Variable.getAllocatedType())) {}

  /// Gives the variable its value's type, if all uses of its address are such accesses.
  bool unwrap() {
    if (!Value || Value == Variable.getAllocatedType() || !Variable.isStaticAlloca() || Variable.isArrayAllocation() ||
        !collect(Variable))
      return false;
    auto *Bare = new AllocaInst(Value, Variable.getAddressSpace(), nullptr, Variable.getAlign(), "", &Variable);
    Bare->takeName(&Variable);
    Bare->setDebugLoc(Variable.getDebugLoc());
    for (Instruction *Member : Members)
      Member->replaceAllUsesWith(Bare);
    Variable.replaceAllUsesWith(Bare);
    for (MemTransferInst *Copy : Copies)
      copyByValue(*Copy);
    for (Instruction *Member : Members)
      Member->eraseFromParent();
    Variable.eraseFromParent();
    return true;
  }

private:
  bool collect(Instruction &Address) {
    for (User *By : Address.users())
      if (auto *Member = dyn_cast<GetElementPtrInst>(By)) {
        if (!Member->hasAllZeroIndices() || !collect(*Member))
          return false;
        Members.push_back(Member);
      } else if (auto *Copy = dyn_cast<MemTransferInst>(By)) {
        auto *Length = dyn_cast<ConstantInt>(Copy->getLength());
        if (Copy->isVolatile() || !Length || Length->getZExtValue() != Size)
          return false;
        if (!is_contained(Copies, Copy))
          Copies.push_back(Copy);
      } else if (!isWholeAccess(*By, Address)) {
        return false;
      }
    return true;
  }

  bool isWholeAccess(const User &By, const Instruction &Address) const {
    if (auto *Load = dyn_cast<LoadInst>(&By))
      return Load->getType() == Value && !Load->isVolatile();
    if (auto *Store = dyn_cast<StoreInst>(&By))
      return Store->getPointerOperand() == &Address && Store->getValueOperand()->getType() == Value &&
             !Store->isVolatile();
    auto *Marker = dyn_cast<IntrinsicInst>(&By);
    return Marker && Marker->isLifetimeStartOrEnd();
  }

  void copyByValue(MemTransferInst &Copy) const {
    IRBuilder<> B(&Copy);
    auto *Moved = B.CreateAlignedLoad(Value, Copy.getRawSource(), Copy.getSourceAlign());
    B.CreateAlignedStore(Moved, Copy.getRawDest(), Copy.getDestAlign());
    Copy.eraseFromParent();
  }

  AllocaInst &Variable;
  Type *Value;
  uint64_t Size;
  SmallVector<GetElementPtrInst *, 4> Members; // inner ones first
  SmallVector<MemTransferInst *, 4> Copies;
};

/// The address of one of several variables, as std::max returns it: what is read behind it can be read where the choice
/// is made.
class ChosenAddress {
public:
  explicit ChosenAddress(PHINode &Choice) : Choice(Choice) {}

  bool readBefore() {
    if (!Choice.getType()->isPointerTy() || !areReads() || !areEdgesFree())
      return false;
    PHINode *Read = PHINode::Create(First->getType(), Choice.getNumIncomingValues(), "", &Choice);
    Read->setDebugLoc(First->getDebugLoc());
    for (unsigned K = 0; K < Choice.getNumIncomingValues(); ++K) {
      BasicBlock *From = Choice.getIncomingBlock(K);
      auto *Load = cast<LoadInst>(First->clone());
      Load->setOperand(0, Choice.getIncomingValue(K));
      Load->insertBefore(From->getTerminator());
      Read->addIncoming(Load, From);
    }
    for (User *By : make_early_inc_range(Choice.users())) {
      auto *Load = cast<LoadInst>(By);
      Load->replaceAllUsesWith(Read);
      Load->eraseFromParent();
    }
    Choice.eraseFromParent();
    return true;
  }

private:
  /// The first read of what lies at the address, if that is read whenever the address is chosen.
  LoadInst *certainRead() const {
    BasicBlock *BB = Choice.getParent();
    for (unsigned K = 0; K < LongestWay && BB && (!K || BB->getSinglePredecessor()); ++K) {
      for (Instruction &I : *BB) {
        if (auto *Load = dyn_cast<LoadInst>(&I); Load && Load->getPointerOperand() == &Choice)
          return Load;
        if (!isGuaranteedToTransferExecutionToSuccessor(&I))
          return nullptr;
      }
      BB = BB->getSingleSuccessor();
    }
    return nullptr;
  }

  /// Whether all that is done with the address is to read what lies there, at once; and that whenever it is chosen.
  bool areReads() {
    First = certainRead();
    return First && all_of(Choice.users(), [this](User *By) {
             auto *Load = dyn_cast<LoadInst>(By);
             return Load && Load->isSimple() && Load->getType() == First->getType() && isUnchangedUntil(*Load);
           });
  }

  /// Whether nothing is written from the choice to a read behind it.
  bool isUnchangedUntil(LoadInst &Read) const {
    BasicBlock *BB = Read.getParent();
    BasicBlock::iterator End = Read.getIterator();
    for (unsigned K = 0; K < LongestWay && BB; ++K) {
      if (any_of(make_range(BB->begin(), End), [](Instruction &I) { return I.mayWriteToMemory(); }))
        return false;
      if (BB == Choice.getParent())
        return true;
      BB = BB->getSinglePredecessor();
      End = BB ? BB->end() : End;
    }
    return false;
  }

  /// Whether control gets from where each address is chosen to here, and nowhere else.
  bool areEdgesFree() const {
    return all_of(Choice.blocks(), [this](BasicBlock *From) {
      return From != Choice.getParent() && isa<BranchInst>(From->getTerminator()) && From->getSingleSuccessor();
    });
  }

  PHINode &Choice;
  LoadInst *First = nullptr;
};

} // namespace

SmallVector<AllocaInst *, 16> localsOf(Function &F) {
  SmallVector<AllocaInst *, 16> Found;
  for (Instruction &I : F.getEntryBlock())
    if (auto *Variable = dyn_cast<AllocaInst>(&I); Variable && Variable->isStaticAlloca())
      Found.push_back(Variable);
  return Found;
}

static bool readBeforeChoices(Function &F) {
  bool Changed = false;
  for (BasicBlock &BB : F)
    for (PHINode &Choice : make_early_inc_range(BB.phis()))
      Changed |= ChosenAddress(Choice).readBefore();
  return Changed;
}

void promoteScalars(Function &F) {
  if (callsReturnTwice(F))
    return;
  for (;;) {
    for (AllocaInst *Variable : localsOf(F))
      Wrapped(*Variable).unwrap();
    SmallVector<AllocaInst *, 16> Scalars = localsOf(F);
    erase_if(Scalars, [](const AllocaInst *A) { return !isAllocaPromotable(A); });
    if (!Scalars.empty()) {
      DominatorTree DT(F);
      AssumptionCache AC(F);
      PromoteMemToReg(Scalars, DT, &AC);
    }
    if (!readBeforeChoices(F) && Scalars.empty())
      return;
  }
}

} // namespace tracekit
