// AllocatorPointers.cpp: see AllocatorPointers.h.
#include "AllocatorPointers.h"

#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/CallPromotionUtils.h"

using namespace llvm;

namespace tracekit {

/// The variable that a value is loaded from, or the value itself. Unoptimised code loads for each use anew.
static const Value *held(const Value *V) {
  auto *Load = dyn_cast<LoadInst>(V);
  return Load && isa<AllocaInst>(Load->getPointerOperand()) ? Load->getPointerOperand() : V;
}

/// Whether a function is looked up in a table of constants, or in one that the first argument points to, as virtual
/// functions are. Each `void close(self)` has free's type.
static bool isMethod(const CallInst &Call) {
  auto *Entry = dyn_cast<LoadInst>(Call.getCalledOperand());
  if (!Entry || Entry->hasMetadata(LLVMContext::MD_invariant_load))
    return Entry;
  auto behindOffsets = [](const Value *Pointer) { return Pointer->stripInBoundsConstantOffsets(); };
  auto *Table = dyn_cast<LoadInst>(behindOffsets(Entry->getPointerOperand()));
  return Table && held(behindOffsets(Table->getPointerOperand())) == held(Call.getArgOperand(0));
}

/// The allocator's name that the type of an indirect call fits to, or "".
static StringRef fittingAllocator(const CallInst &Call) {
  const FunctionType *T = Call.getFunctionType();
  auto isPointer = [](const Type *Of) { return Of->isPointerTy() && Of->getPointerAddressSpace() == 0; };
  const Type *Size = Call.getModule()->getDataLayout().getIntPtrType(Call.getContext());
  if (T->isVarArg() || T->getNumParams() == 0 || T->getNumParams() > 2)
    return "";
  const Type *First = T->getParamType(0);
  if (T->getReturnType()->isVoidTy())
    return T->getNumParams() == 1 && isPointer(First) && !isMethod(Call) ? "free" : "";
  if (!isPointer(T->getReturnType()))
    return "";
  if (T->getNumParams() == 1)
    return First == Size ? "malloc" : "";
  if (T->getParamType(1) != Size)
    return "";
  return First == Size ? "calloc" : isPointer(First) ? "realloc" : "";
}

/// The library's function, unless the module has one of its own. A reference that is new to the module is weak: there
/// may be no C library.
static Function *declared(Module &M, StringRef Name, FunctionType *T) {
  Function *Known = M.getFunction(Name);
  if (!Known && !M.getNamedValue(Name))
    Known = Function::Create(T, GlobalValue::ExternalWeakLinkage, Name, M);
  return Known && Known->isDeclaration() ? Known : nullptr;
}

void nameAllocators(Function &F) {
  SmallVector<CallInst *, 8> Fitting;
  for (Instruction &I : instructions(F))
    if (auto *Call = dyn_cast<CallInst>(&I))
      if (Call->isIndirectCall() && !Call->isMustTailCall() && !fittingAllocator(*Call).empty())
        Fitting.push_back(Call);
  for (CallInst *Call : Fitting) {
    Function *Allocator = declared(*F.getParent(), fittingAllocator(*Call), Call->getFunctionType());
    if (Allocator && isLegalToPromote(*Call, Allocator))
      promoteCallWithIfThenElse(*Call, Allocator);
  }
}

} // namespace tracekit
