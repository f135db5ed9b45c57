// Signs.cpp: see Signs.h.
#include "Signs.h"

#include "SourceTypes.h"

#include "llvm/BinaryFormat/Dwarf.h"

using namespace llvm;

namespace tracekit {

/// Whether a value, or what it is extended to, is an operand of an order that is signed, or unsigned if `!Signed`.
static bool isOrdered(const Value &V, bool Signed) {
  return any_of(V.users(), [Signed](const User *By) {
    if (auto *Compare = dyn_cast<ICmpInst>(By))
      return Signed ? Compare->isSigned() : Compare->isUnsigned();
    if (isa<ZExtInst>(By)) // in the wider type both orders are the same
      return false;
    return isa<SExtInst>(By) && isOrdered(*By, Signed);
  });
}

bool isComparedWithOtherSign(const Loop &L, const DIType *T, function_ref<bool(const LoadInst &)> Reads) {
  auto *Number = dyn_cast_or_null<DIBasicType>(elementType(T));
  if (!Number)
    return false;
  bool Signed = Number->getEncoding() == dwarf::DW_ATE_signed || Number->getEncoding() == dwarf::DW_ATE_signed_char;
  if (!Signed && Number->getEncoding() != dwarf::DW_ATE_unsigned &&
      Number->getEncoding() != dwarf::DW_ATE_unsigned_char)
    return false;
  return any_of(L.blocks(), [&](const BasicBlock *BB) {
    return any_of(*BB, [&](const Instruction &I) {
      auto *Load = dyn_cast<LoadInst>(&I);
      return Load && Reads(*Load) && isOrdered(*Load, !Signed);
    });
  });
}

} // namespace tracekit
