// References.cpp: see References.h.
#include "References.h"

#include "Compat.h"
#include "Names.h"
#include "SourceTypes.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace tracekit {

static bool isNumber(const DIType *T) { return isa_and_nonnull<DIBasicType>(plainType(T)) && isReducible(T); }

static bool isReferenceToNumber(const DIType *T) {
  auto *Derived = dyn_cast_or_null<DIDerivedType>(plainType(T));
  bool IsReference = Derived && (Derived->getTag() == dwarf::DW_TAG_reference_type ||
                                 Derived->getTag() == dwarf::DW_TAG_rvalue_reference_type);
  return IsReference && isNumber(Derived->getBaseType());
}

const DILocalVariable *referenceIn(const Value *Variable) {
  const DILocalVariable *V =
      isa<AllocaInst>(Variable) ? variableAt(const_cast<Value *>(Variable), /*Whole=*/true) : nullptr;
  return V && isReferenceToNumber(V->getType()) ? V : nullptr;
}

const DILocalVariable *referenceAt(const Value *Address) {
  if (isa<Argument>(Address)) {
    const DILocalVariable *V = variableAt(const_cast<Value *>(Address), /*Whole=*/true);
    return V && isFortran(*V->getScope()->getSubprogram()) && isNumber(V->getType()) ? V : nullptr;
  }
  auto *Load = dyn_cast<LoadInst>(Address);
  return Load ? referenceIn(Load->getPointerOperand()) : nullptr;
}

bool isOptional(const Value &Address) {
  return isa<Argument>(Address) &&
         any_of(Address.users(), [](const User *By) { return isa<ICmpInst, PtrToIntInst>(By); });
}

} // namespace tracekit
