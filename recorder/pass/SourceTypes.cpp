// SourceTypes.cpp: see SourceTypes.h.
#include "SourceTypes.h"

#include "llvm/BinaryFormat/Dwarf.h"

using namespace llvm;

namespace tracekit {

const DIType *plainType(const DIType *T) {
  while (auto *Derived = dyn_cast_or_null<DIDerivedType>(T)) {
    unsigned Tag = Derived->getTag();
    if (Tag != dwarf::DW_TAG_typedef && Tag != dwarf::DW_TAG_const_type && Tag != dwarf::DW_TAG_volatile_type &&
        Tag != dwarf::DW_TAG_restrict_type && Tag != dwarf::DW_TAG_member)
      break;
    T = Derived->getBaseType();
  }
  return T;
}

const DIType *elementType(const DIType *T) {
  T = plainType(T);
  if (auto *Derived = dyn_cast_or_null<DIDerivedType>(T)) {
    unsigned Tag = Derived->getTag();
    bool IsReference = Tag == dwarf::DW_TAG_reference_type || Tag == dwarf::DW_TAG_rvalue_reference_type;
    return IsReference ? elementType(Derived->getBaseType()) : T;
  }
  auto *Composite = dyn_cast_or_null<DICompositeType>(T);
  return Composite && Composite->getTag() == dwarf::DW_TAG_array_type ? elementType(Composite->getBaseType()) : T;
}

bool isReducible(const DIType *T) {
  T = elementType(T);
  auto *Basic = dyn_cast_or_null<DIBasicType>(T);
  return !T || (Basic && Basic->getEncoding() != dwarf::DW_ATE_complex_float);
}

bool isWhole(const DIType *T) {
  auto *Basic = dyn_cast_or_null<DIBasicType>(elementType(T));
  return Basic && Basic->getEncoding() != dwarf::DW_ATE_float && Basic->getEncoding() != dwarf::DW_ATE_complex_float;
}

} // namespace tracekit
