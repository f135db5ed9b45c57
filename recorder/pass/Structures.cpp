// Structures.cpp: see Structures.h.
#include "Structures.h"

#include "Compat.h"
#include "FortranTypes.h"
#include "Names.h"
#include "Referents.h"
#include "SourceTypes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace tracekit {

static bool isStructure(const DIType *T) {
  auto *Composite = dyn_cast_or_null<DICompositeType>(T);
  if (!Composite || Composite->isForwardDecl() || !Composite->getSizeInBits())
    return false;
  unsigned Tag = Composite->getTag();
  return Tag == dwarf::DW_TAG_structure_type || Tag == dwarf::DW_TAG_class_type || Tag == dwarf::DW_TAG_union_type;
}

/// Whether an element of a type is the variants of an enumeration in Rust.
static bool isVariantPart(const DINode *Each) {
  auto *Composite = dyn_cast<DICompositeType>(Each);
  return Composite && Composite->getTag() == dwarf::DW_TAG_variant_part;
}

/// The name with the namespaces and classes around it, without the parameters of templates.
static std::string qualifiedName(const DICompositeType &T, StringRef Name) {
  std::string Text = Name.take_until([](char C) { return C == '<'; }).str();
  for (const DIScope *S = T.getScope(); S && !isa<DIFile, DICompileUnit>(S); S = S->getScope())
    if (isa<DINamespace, DICompositeType>(S)) {
      StringRef Outer = S->getName().take_until([](char C) { return C == '<'; });
      Text = (Outer.empty() ? "(anonymous namespace)" : Outer.str()) + "::" + Text;
    }
  return Text;
}

void Structures::enter(StringRef Name, const DICompositeType &Type) {
  auto &Same = ByName[Name];
  for (const Known &Other : Same)
    if (Other.Type == &Type)
      return;
  Same.push_back({&Type, Type.getSizeInBits() / 8});
}

void Structures::look(const Module &M) {
  DebugInfoFinder Finder;
  Finder.processModule(M);
  for (const DIType *T : Finder.types()) {
    if (isStructure(T)) {
      auto &Type = *cast<DICompositeType>(T);
      if (!Type.getIdentifier().empty())
        ByIdentifier[Type.getIdentifier()] = &Type;
      if (!Type.getName().empty())
        enter(qualifiedName(Type, Type.getName()), Type);
    } else if (auto *Named = dyn_cast<DIDerivedType>(T); Named && Named->getTag() == dwarf::DW_TAG_typedef) {
      auto *Type = dyn_cast_or_null<DICompositeType>(Named->getBaseType());
      if (isStructure(Type) && Type->getName().empty()) { // typedef struct { ... } name;
        enter(qualifiedName(*Type, Named->getName()), *Type);
        Aliases.try_emplace(Type, Named->getName());
      }
    }
  }
  for (const auto &Each : fortranTypes(M))
    enter(Each.getKey(), *Each.getValue());
}

const DICompositeType *Structures::find(StringRef Name, uint64_t Bytes) const {
  auto Same = ByName.find(Name);
  if (Same == ByName.end())
    return nullptr;
  const DICompositeType *Found = nullptr;
  for (const Known &Each : Same->second)
    if (!Bytes || Each.Bytes == Bytes) {
      if (Found)
        return nullptr; // instances of one template
      Found = Each.Type;
    }
  return Found;
}

/// clang: !{structure, access, offset, ...}; the name of a structure in C, the mangled one in C++.
MemberAt Structures::byAliasInformation(const Instruction &I) const {
  const MDNode *Tag = I.getMetadata(LLVMContext::MD_tbaa);
  if (!Tag || Tag->getNumOperands() < 3 || !isa_and_nonnull<MDNode>(Tag->getOperand(0).get()))
    return {};
  auto *Structure = cast<MDNode>(Tag->getOperand(0));
  auto *Offset = mdconst::dyn_extract_or_null<ConstantInt>(Tag->getOperand(2));
  if (Structure == Tag->getOperand(1).get() || !Structure->getNumOperands() || !Offset)
    return {};
  auto *Name = dyn_cast_or_null<MDString>(Structure->getOperand(0).get());
  if (!Name || Name->getString().empty())
    return {};
  const DICompositeType *Type = ByIdentifier.lookup(Name->getString());
  return {Type ? Type : find(Name->getString(), 0), Offset->getZExtValue()};
}

/// As a structure is called whose LLVM type has this name: `struct.ns::name.12` is ns::name. In Fortran as the type is.
static StringRef withoutKind(StringRef Name) {
  if (startsWith(Name, "_Q"))
    return Name;
  for (StringRef Kind : {"struct.", "class.", "union."})
    if (Name.take_front(Kind.size()) == Kind) {
      Name = Name.drop_front(Kind.size());
      StringRef Number = Name.substr(Name.rfind('.') + 1);
      if (Name.contains('.') && !Number.empty() && all_of(Number, [](char C) { return C >= '0' && C <= '9'; }))
        Name = Name.take_front(Name.rfind('.'));
      return Name;
    }
  return "";
}

/// Whether an address is that of a constant part of an element whose number is not constant, element `[i].member`; how
/// many bytes the part is from the element's start.
static bool memberOfElement(const GEPOperator &Part, const DataLayout &DL, APInt &Constant) {
  if (!isa<StructType>(Part.getSourceElementType()))
    return false;
  unsigned Width = DL.getIndexTypeSizeInBits(Part.getType());
  OffsetSteps Steps;
  Constant = APInt(Width, 0);
  uint64_t Size = DL.getTypeAllocSize(Part.getSourceElementType()).getFixedValue();
  return Size && Part.collectOffset(DL, Width, Steps, Constant) &&
         all_of(Steps, [&](const auto &Step) { return Step.second.getZExtValue() % Size == 0; });
}

/// The outermost structure that an address is computed through.
MemberAt Structures::byAddress(const Value *Address, const DataLayout &DL) const {
  MemberAt Found;
  int64_t Offset = 0;
  while (auto *Part = dyn_cast<GEPOperator>(Address)) {
    APInt Constant(DL.getIndexTypeSizeInBits(Part->getType()), 0);
    auto *Structure = dyn_cast<StructType>(Part->getSourceElementType());
    bool IsElement = Structure && Part->getNumIndices() == 1; // pointer + number
    bool IsElsewhere = !IsElement && !Part->accumulateConstantOffset(DL, Constant);
    if (IsElsewhere && !memberOfElement(*Part, DL, Constant))
      break;
    Offset += IsElement ? 0 : Constant.getSExtValue();
    if (Structure && Structure->hasName()) {
      int64_t Size = DL.getTypeAllocSize(Structure).getFixedValue();
      if (const DICompositeType *Type = find(withoutKind(Structure->getName()), Size)) {
        // in Fortran, whose arrays begin at 1, the element before: its offset is less than nothing
        bool Before = Offset < 0 && startsWith(Structure->getName(), "_Q");
        if (Offset >= 0 || Before)
          Found = {Type, uint64_t(Before ? (Offset % Size + Size) % Size : Offset)};
      }
    }
    if (IsElsewhere)
      break;
    if (IsElement)
      break;
    Address = Part->getPointerOperand();
  }
  return Found;
}

MemberAt Structures::memberAt(const Instruction &I, const Value *Address) const {
  MemberAt Found = byAliasInformation(I);
  if (!Found.Type && Address)
    Found = byAddress(Address, I.getModule()->getDataLayout());
  if (Found.Type && Found.Offset >= Found.Type->getSizeInBits() / 8)
    return {};
  return Found;
}

/// Whether the front end says where pointers lead by the types of variables alone.
static bool knowsByVariables(const Function &F) {
  const DICompileUnit *Unit = F.getSubprogram() ? F.getSubprogram()->getUnit() : nullptr;
  return Unit && Unit->getProducer().contains("rustc");
}

/// Whether a structure is more than a name for its one part, as Box, NonNull and Option<&T> are.
static bool hasParts(const DICompositeType &T) {
  unsigned Parts = 0;
  for (const DINode *Each : T.getElements()) {
    auto *Member = dyn_cast<DIDerivedType>(Each);
    if (isVariantPart(Each))
      Parts += T.getSizeInBits() > 64 ? 2 : 0;
    else if (Member && !Member->isStaticMember() && Member->getSizeInBits())
      Parts += 1;
  }
  return Parts > 1;
}

static MemberAt byVariables(Referents &Pointers, Value *Address) {
  Referent To = Pointers.of(Address);
  auto *Type = dyn_cast_or_null<DICompositeType>(plainType(To.Type));
  if (!isStructure(Type) || !hasParts(*Type) || To.Offset >= Type->getSizeInBits() / 8)
    return {};
  return {Type, To.Offset};
}

/// The place of an access in the source, and what it moves: where front ends give no column of their own to each access
/// (Fortran's, Rust's), the pointer that leads somewhere and what is read there have the same place.
static std::string memberKey(const Instruction &I, const DILocation &At) {
  auto *Store = dyn_cast<StoreInst>(&I);
  const Type *Moved = Store ? Store->getValueOperand()->getType() : I.getType();
  unsigned Width = Moved->isIntegerTy() ? Moved->getIntegerBitWidth() : 0;
  return placeKey(At) + "/" + std::to_string(Moved->getTypeID()) + "/" + std::to_string(Width);
}

void SourceMembers::look(Function &F) {
  Referents Pointers(F.getParent()->getDataLayout());
  bool ByVariables = knowsByVariables(F);
  for (BasicBlock &BB : F)
    for (Instruction &I : BB) {
      Value *Address = getLoadStorePointerOperand(&I);
      const DILocation *At = I.getDebugLoc().get();
      if (!Address || !At || !At->getColumn() || isa<AllocaInst>(Address))
        continue;
      MemberAt Here = Known.memberAt(I, Address);
      if (!Here.Type && ByVariables)
        Here = byVariables(Pointers, Address);
      for (const std::string &Key : {placeKey(*At), memberKey(I, *At)}) {
        auto [Entry, New] = Places.try_emplace(Key, Here);
        if (!New && (Entry->second.Type != Here.Type || Entry->second.Offset != Here.Offset))
          Entry->second = {};
      }
    }
}

MemberAt SourceMembers::find(const Instruction &I, const Value *Address) const {
  MemberAt Found = Known.memberAt(I, Address);
  const DILocation *At = I.getDebugLoc().get();
  if (Found.Type || !At || !At->getColumn() || !getLoadStorePointerOperand(&I))
    return Found;
  auto Place = Places.find(memberKey(I, *At));
  return Place == Places.end() ? Places.lookup(placeKey(*At)) : Place->second; // the optimiser may move other types
}

// -- rows ------------------------------------------------------------------------------------------

/// The element of an array of arrays, and what a typedef calls it last.
static std::pair<const DIType *, StringRef> elementOf(const DIType *T) {
  StringRef Alias;
  while (const DIType *Of = T) {
    if (auto *Derived = dyn_cast<DIDerivedType>(T); Derived && plainType(T) != T) {
      if (Derived->getTag() == dwarf::DW_TAG_typedef)
        Alias = Derived->getName();
      T = Derived->getBaseType();
    } else if (auto *Array = dyn_cast<DICompositeType>(T); Array && Array->getTag() == dwarf::DW_TAG_array_type) {
      T = Array->getBaseType();
    }
    if (T == Of)
      break;
  }
  return {T, Alias};
}

/// Whether a type is a pointer, or has one at whatever depth.
static bool holdsPointer(const DIType *T, unsigned Depth = 0) {
  if (auto *Derived = dyn_cast_or_null<DIDerivedType>(T))
    return Derived->getTag() == dwarf::DW_TAG_pointer_type || holdsPointer(Derived->getBaseType(), Depth + 1);
  auto *Composite = dyn_cast_or_null<DICompositeType>(T);
  return Composite && Depth < 16 &&
         any_of(
             Composite->getElements(),
             [&](const DINode *Each) {
               auto *Part = dyn_cast<DIType>(Each);
               return Part && holdsPointer(Part, Depth + 1);
             });
}

/// Whether a type is an enumeration of Rust of a pointer or none, as Option<Box<T>>: one field, not its variants.
static bool isChoiceOfPointer(const DIType *T) {
  auto *Composite = dyn_cast_or_null<DICompositeType>(T);
  return isStructure(Composite) && Composite->getSizeInBits() <= 64 &&
         any_of(Composite->getElements(), isVariantPart) && holdsPointer(T);
}

/// `Option<alloc::boxed::Box<list::Node, alloc::alloc::Global>>` is Option<Box<Node>>.
static std::string withoutPaths(StringRef Name) {
  std::string Text = Name.str();
  for (size_t At; (At = Text.find(", alloc::alloc::Global")) != std::string::npos;)
    Text.erase(At, strlen(", alloc::alloc::Global"));
  for (size_t At; (At = Text.find("::")) != std::string::npos;) {
    size_t Begin = At;
    while (Begin > 0 && (isAlnum(Text[Begin - 1]) || Text[Begin - 1] == '_'))
      --Begin;
    Text.erase(Begin, At + 2 - Begin);
  }
  return Text;
}

static std::string nameOfType(const DIType *T, unsigned Depth = 0) {
  if (!T || Depth > 16)
    return "void";
  if (auto *Derived = dyn_cast<DIDerivedType>(T)) {
    std::string Base = Derived->getTag() == dwarf::DW_TAG_typedef ? "" : nameOfType(Derived->getBaseType(), Depth + 1);
    switch (Derived->getTag()) {
    case dwarf::DW_TAG_pointer_type:
      return Base + (Base.back() == '*' ? "*" : " *");
    case dwarf::DW_TAG_reference_type:
      return Base + " &";
    case dwarf::DW_TAG_rvalue_reference_type:
      return Base + " &&";
    case dwarf::DW_TAG_const_type:
      return Base.back() == '*' ? Base + " const" : "const " + Base;
    case dwarf::DW_TAG_volatile_type:
      return "volatile " + Base;
    case dwarf::DW_TAG_atomic_type:
      return "_Atomic " + Base;
    case dwarf::DW_TAG_typedef:
      return Derived->getName().str();
    default:
      return Base;
    }
  }
  if (auto *Array = dyn_cast<DICompositeType>(T); Array && Array->getTag() == dwarf::DW_TAG_array_type) {
    const DIType *Element = Array->getBaseType();
    uint64_t Bits = Element ? Element->getSizeInBits() : 0;
    for (const DIType *Plain = plainType(Element); !Bits && Plain; Plain = nullptr)
      Bits = Plain->getSizeInBits();
    return nameOfType(Element, Depth + 1) + (Bits ? "[" + std::to_string(Array->getSizeInBits() / Bits) + "]" : "[]");
  }
  if (isa<DISubroutineType>(T))
    return "function";
  if (isChoiceOfPointer(T))
    return withoutPaths(T->getName());
  if (!T->getName().empty())
    return T->getName().str();
  unsigned Tag = T->getTag();
  return Tag == dwarf::DW_TAG_union_type ? "union" : Tag == dwarf::DW_TAG_enumeration_type ? "enum" : "struct";
}

Row TypeRows::of(const DIType *T, StringRef Known) {
  auto [Element, Alias] = elementOf(T);
  if (!isStructure(Element))
    return TK_NONE;
  auto *Type = cast<DICompositeType>(Element);
  auto There = Rows.find(Type);
  return There != Rows.end() ? There->second : add(*Type, Alias.empty() ? Known : Alias);
}

/// Bases and members; of an enumeration in Rust what tells its variants apart, and each of these.
static SmallVector<const DIDerivedType *, 8> membersOf(const DICompositeType &T) {
  SmallVector<const DIDerivedType *, 8> Found;
  for (const DINode *Each : T.getElements()) {
    if (isVariantPart(Each)) {
      auto *Variants = cast<DICompositeType>(Each);
      if (Variants->getDiscriminator())
        Found.push_back(Variants->getDiscriminator());
      Found.append(membersOf(*Variants));
    } else if (auto *Member = dyn_cast<DIDerivedType>(Each); Member && !Member->isStaticMember()) {
      if (Member->getTag() == dwarf::DW_TAG_inheritance || Member->getTag() == dwarf::DW_TAG_member)
        Found.push_back(Member);
    }
  }
  return Found;
}

/// Members after those of the structures that they are made of: a run of rows belongs to one structure.
Row TypeRows::add(const DICompositeType &T, StringRef Alias) {
  std::vector<tk_row_members> Members;
  for (const DIDerivedType *Member : membersOf(T)) {
    bool IsBase = Member->getTag() == dwarf::DW_TAG_inheritance;
    const DIType *Of = Member->getBaseType(), *Plain = plainType(Of);
    uint64_t Bits = Member->getSizeInBits() ? Member->getSizeInBits() : Plain ? Plain->getSizeInBits() : 0;
    std::string Name = IsBase ? nameOfType(Of) : Member->getName().str();
    if (Name.empty() && Member->isArtificial()) // what tells the variants of an enumeration apart
      Name = "(variant)";
    tk_row_members R = {};
    R.offset = Member->getOffsetInBits();
    R.size = Bits;
    R.name = U.string(Name);
    R.type_name = U.string(nameOfType(Of));
    R.type = isChoiceOfPointer(Plain) ? TK_NONE : TypeRows::of(Of);
    R.location = Sources.declaration(Member->getFile(), Member->getLine(), nullptr);
    Members.push_back(R);
  }
  tk_row_types R = {};
  R.size = T.getSizeInBits() / 8;
  R.name = U.string(T.getName().empty() && !Alias.empty() ? Alias.str() : nameOfType(&T));
  R.kind = T.getTag() == dwarf::DW_TAG_union_type ? TK_STRUCTURE_UNION : TK_STRUCTURE_STRUCT;
  R.first_member = U.Members.size();
  R.members = Members.size();
  R.location = Sources.declaration(T.getFile(), T.getLine(), nullptr);
  U.Members.insert(U.Members.end(), Members.begin(), Members.end());
  Row Index = U.Types.size();
  U.Types.push_back(R);
  return Rows[&T] = Index;
}

} // namespace tracekit
