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
  constexpr uint64_t WidestBits = 64; // of wider ones clang's code calls libatomic
  return !T || (Basic && Basic->getEncoding() != dwarf::DW_ATE_complex_float && Basic->getSizeInBits() <= WidestBits);
}

bool isWhole(const DIType *T) {
  auto *Basic = dyn_cast_or_null<DIBasicType>(elementType(T));
  return Basic && Basic->getEncoding() != dwarf::DW_ATE_float && Basic->getEncoding() != dwarf::DW_ATE_complex_float;
}

static bool isFixed(const DIType *T) {
  for (; auto *Derived = dyn_cast_or_null<DIDerivedType>(T); T = Derived->getBaseType()) {
    unsigned Tag = Derived->getTag();
    if (Tag == dwarf::DW_TAG_const_type || Tag == dwarf::DW_TAG_reference_type ||
        Tag == dwarf::DW_TAG_rvalue_reference_type)
      return true;
    if (Tag != dwarf::DW_TAG_typedef && Tag != dwarf::DW_TAG_volatile_type && Tag != dwarf::DW_TAG_member)
      return false;
  }
  return false;
}

/// Whether a function of a class makes its objects, ends them or assigns to them.
static bool isSpecial(const DISubprogram &Member, const DICompositeType &Of) {
  StringRef Name = Member.getName();
  return Name.take_front(1) == "~" || Name == "operator=" ||
         Name == Of.getName().take_until([](char C) { return C == '<'; });
}

static bool isForEveryone(const DISubprogram &Member, const DICompositeType &Of) {
  bool IsPublic = Member.isPublic() || (Of.getTag() != dwarf::DW_TAG_class_type && !Member.isPrivate());
  return IsPublic && !Member.isProtected() && !Member.isDeleted();
}

bool isPlainCopy(const DIType *T) {
  auto *Class = dyn_cast_or_null<DICompositeType>(elementType(T));
  if (!Class || Class->getTag() == dwarf::DW_TAG_enumeration_type || Class->getTag() == dwarf::DW_TAG_array_type)
    return true;
  if (Class->isForwardDecl())
    return false;
  return all_of(Class->getElements(), [Class](const DINode *Element) {
    if (auto *Member = dyn_cast_or_null<DISubprogram>(Element))
      return Member->isArtificial() || !isSpecial(*Member, *Class) ||
             (!(Class->getFlags() & DINode::FlagNonTrivial) && isForEveryone(*Member, *Class));
    auto *Part = dyn_cast_or_null<DIDerivedType>(Element);
    return !Part || Part->isStaticMember() || Part->getTag() == dwarf::DW_TAG_friend ||
           (!isFixed(Part) && isPlainCopy(Part->getBaseType()));
  });
}

} // namespace tracekit
