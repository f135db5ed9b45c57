// Atomics.cpp: see Atomics.h.
#include "Atomics.h"

#include "AtomicAssembly.h"
#include "Compat.h"

#include "../runtime/format.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace tracekit {

bool isOrdering(StringRef Callee) {
  return Callee == "__tk_probe" || Callee == "__tk_atomic_begin" || Callee == "__tk_atomic_end" ||
         Callee == "__tk_fence";
}

static uint32_t flags(AtomicOrdering Ordering) {
  return (isAcquireOrStronger(Ordering) ? TK_ATOMIC_ACQUIRE : 0) |
         (isReleaseOrStronger(Ordering) ? TK_ATOMIC_RELEASE : 0);
}

namespace {

/// So many bytes, as the event's flags tell it.
uint32_t sizeFlag(uint64_t Bytes) { return TK_ATOMIC_SIZE * (1 + Log2_64(Bytes)); }

/// The size of an operation.
uint32_t sizeOf(const Instruction &I, const Type *Of) {
  return sizeFlag(I.getModule()->getDataLayout().getTypeStoreSize(const_cast<Type *>(Of)).getFixedValue());
}

/// What an operation is, if it orders threads: its address, and the flags of the event. Those of a compare-and-exchange
/// that failed are `Failed`.
struct Atomic {
  Value *Address = nullptr;
  uint32_t Order = 0, Failed = 0;
};

/// A structure in place of the word that the statement accesses ("+m" of Linux' `__xg`) counts as the largest word.
Atomic assemblyOf(const CallBase &Call) {
  const uint64_t Largest = 16;
  AtomicAssembly Found = atomicAssembly(Call);
  if (!Found.Address)
    return {};
  uint32_t Does = Found.Does == AtomicAssembly::LOAD    ? TK_ATOMIC_LOAD
                  : Found.Does == AtomicAssembly::STORE ? TK_ATOMIC_STORE
                                                        : TK_ATOMIC_LOAD | TK_ATOMIC_STORE;
  return {Found.Address, Does | (Found.Acquires ? TK_ATOMIC_ACQUIRE : 0) | (Found.Releases ? TK_ATOMIC_RELEASE : 0) |
                             (Found.Bytes ? sizeFlag(std::min(Found.Bytes, Largest)) : 0)};
}

Atomic atomicOf(Instruction &I) {
  if (auto *Call = dyn_cast<CallBase>(&I))
    return assemblyOf(*Call);
  if (auto *Load = dyn_cast<LoadInst>(&I); Load && Load->isAtomic() && Load->getSyncScopeID() == SyncScope::System)
    return {Load->getPointerOperand(),
            sizeOf(I, Load->getType()) | TK_ATOMIC_LOAD | (flags(Load->getOrdering()) & TK_ATOMIC_ACQUIRE)};
  if (auto *Store = dyn_cast<StoreInst>(&I); Store && Store->isAtomic() && Store->getSyncScopeID() == SyncScope::System)
    return {Store->getPointerOperand(), sizeOf(I, Store->getValueOperand()->getType()) | TK_ATOMIC_STORE |
                                            (flags(Store->getOrdering()) & TK_ATOMIC_RELEASE)};
  if (auto *Update = dyn_cast<AtomicRMWInst>(&I); Update && Update->getSyncScopeID() == SyncScope::System)
    return {Update->getPointerOperand(),
            sizeOf(I, Update->getType()) | TK_ATOMIC_LOAD | TK_ATOMIC_STORE | flags(Update->getOrdering())};
  if (auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&I); Exchange && Exchange->getSyncScopeID() == SyncScope::System) {
    uint32_t Size = sizeOf(I, Exchange->getNewValOperand()->getType());
    return {Exchange->getPointerOperand(),
            Size | TK_ATOMIC_LOAD | TK_ATOMIC_STORE | flags(Exchange->getSuccessOrdering()),
            Size | TK_ATOMIC_LOAD | (flags(Exchange->getFailureOrdering()) & TK_ATOMIC_ACQUIRE)};
  }
  return {};
}

/// The order of a fence, or nothing.
std::optional<uint32_t> fenceOf(const Instruction &I) {
  if (auto *Fence = dyn_cast<FenceInst>(&I); Fence && Fence->getSyncScopeID() == SyncScope::System)
    return flags(Fence->getOrdering());
  if (auto *Call = dyn_cast<CallBase>(&I))
    if (AtomicAssembly Found = atomicAssembly(*Call); Found.Does == AtomicAssembly::FENCE)
      return (Found.Acquires ? TK_ATOMIC_ACQUIRE : 0) | (Found.Releases ? TK_ATOMIC_RELEASE : 0);
  return std::nullopt;
}

} // namespace

static FunctionCallee runtime(Module &M, StringRef Name, ArrayRef<Type *> Arguments) {
  LLVMContext &C = M.getContext();
  AttributeList NoUnwind = AttributeList::get(C, AttributeList::FunctionIndex, {Attribute::NoUnwind});
  FunctionCallee Callee =
      M.getOrInsertFunction(Name, FunctionType::get(Type::getVoidTy(C), Arguments, false), NoUnwind);
  cast<Function>(Callee.getCallee())->setVisibility(GlobalValue::HiddenVisibility);
  cast<Function>(Callee.getCallee())->setDSOLocal(true);
  return Callee;
}

void orderAtomics(Function &F) {
  Module &M = *F.getParent();
  Type *Pointer = PointerType::getUnqual(M.getContext()), *Number = Type::getInt32Ty(M.getContext());
  SmallVector<Instruction *, 8> Found;
  for (Instruction &I : instructions(F)) {
    const Value *Address = atomicOf(I).Address;
    if ((Address && Address->getType()->getPointerAddressSpace() == 0) || fenceOf(I))
      Found.push_back(&I);
  }
  for (Instruction *I : Found) {
    if (std::optional<uint32_t> Order = fenceOf(*I)) {
      IRBuilder<> B(I->getNextNode());
      B.SetCurrentDebugLocation(I->getDebugLoc());
      B.CreateCall(runtime(M, "__tk_fence", {Number}), {B.getInt32(*Order)});
      continue;
    }
    Atomic Operation = atomicOf(*I);
    IRBuilder<> Before(I);
    Before.CreateCall(runtime(M, "__tk_atomic_begin", {Pointer}), {Operation.Address});
    IRBuilder<> After(I->getNextNode());
    After.SetCurrentDebugLocation(I->getDebugLoc());
    Value *Order = After.getInt32(Operation.Order);
    if (isa<AtomicCmpXchgInst>(I))
      Order = After.CreateSelect(After.CreateExtractValue(I, 1), Order, After.getInt32(Operation.Failed));
    After.CreateCall(runtime(M, "__tk_atomic_end", {Pointer, Number}), {Operation.Address, Order});
  }
}

} // namespace tracekit
