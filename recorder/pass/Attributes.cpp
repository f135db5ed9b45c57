// Attributes.cpp: see Attributes.h.
#include "Attributes.h"

#include "Compat.h"
#include "Leaves.h"

#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace tracekit {

static bool isIFuncResolver(const Function &F) {
  for (const GlobalIFunc &I : F.getParent()->ifuncs())
    if (I.getResolverFunction() == &F)
      return true;
  return false;
}

/// These are called in the middle of a block: leaves, and what the code generator calls by itself, for intrinsics and
/// wide arithmetic. A program's own definition must not write records there.
static bool isCalledInsideBlocks(const Function &F, const TargetLibraryInfo &TLI) {
  if (F.hasLocalLinkage())
    return false;
  StringRef Name = F.getName();
  static constexpr StringLiteral Memory[] = {"memcpy", "memmove", "memset", "memcmp", "bcmp", "bzero"};
  if (is_contained(Memory, Name) || isLeaf(Name))
    return true;
  if (startsWith(Name, "__") && (Name.ends_with("ti3") || Name.ends_with("ti2") || Name.ends_with("tf2") ||
                                 Name.ends_with("tf3") || Name.ends_with("di3")))
    return true;
  LibFunc Known;
  return TLI.getLibFunc(F, Known) && F.getReturnType()->isFloatingPointTy() &&
         none_of(F.args(), [](const Argument &A) { return A.getType()->isPointerTy(); });
}

static bool usesFunclets(const Function &F) {
  return any_of(F, [](const BasicBlock &BB) { return BB.isEHPad() && !BB.isLandingPad(); });
}

bool isInstrumented(const Function &F, const TargetLibraryInfo &TLI) {
  if (F.isDeclaration() || F.hasAvailableExternallyLinkage() || startsWith(F.getName(), "__tk_"))
    return false;
  if (F.hasFnAttribute(Attribute::Naked) || F.hasFnAttribute(Attribute::DisableSanitizerInstrumentation) ||
      F.hasFnAttribute("no_instrument_function"))
    return false;
  if (F.isPresplitCoroutine() || F.hasGC() || F.getCallingConv() == CallingConv::X86_INTR)
    return false;
  return !isIFuncResolver(F) && !isCalledInsideBlocks(F, TLI) && !usesFunclets(F);
}

void makeInternalLike(Function &Own, Function &F) {
  Own.copyAttributesFrom(&F);
  Own.setLinkage(GlobalValue::InternalLinkage);
  Own.setVisibility(GlobalValue::DefaultVisibility);
  Own.setDLLStorageClass(GlobalValue::DefaultStorageClass);
  Own.setDSOLocal(true);
  Own.setComdat(F.getComdat());
}

void dropBrokenAttributes(Module &M) {
  static constexpr Attribute::AttrKind Kinds[] = {Attribute::Memory, Attribute::NoSync, Attribute::NoCallback,
                                                  Attribute::Speculatable};
  AttributeMask Broken;
  for (Attribute::AttrKind Kind : Kinds)
    Broken.addAttribute(Kind);
  for (Function &F : M) {
    if (F.isIntrinsic())
      continue;
    // Of a library function they would come back where the linker's plugin optimises, and the optimiser would make
    // other calls and stores of a call whose records are written by then (strlen and a store of __strcat_chk).
    if (F.isDeclaration() && !isLeaf(F.getName()))
      F.addFnAttr(Attribute::NoBuiltin);
    F.removeFnAttrs(Broken);
    for (Instruction &I : instructions(F))
      if (auto *Call = dyn_cast<CallBase>(&I);
          Call && Call->getIntrinsicID() == Intrinsic::not_intrinsic && !Call->isInlineAsm())
        Call->setAttributes(Call->getAttributes().removeFnAttributes(F.getContext(), Broken));
  }
}

} // namespace tracekit
